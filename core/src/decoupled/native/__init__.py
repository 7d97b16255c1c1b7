"""Machine code that ships with the package: load it, check it and call it without a compiler.

`decoupled.builder` makes it, from the same functions that Numba compiles where none ships.
"""
