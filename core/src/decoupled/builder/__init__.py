"""Build the machine code that ships.

Numba compiles when the package is built, and not when it is used.

`python -m decoupled.builder` writes one shared library for each kind of processor, and a manifest
beside them, to where `decoupled.native` looks for them.
"""
