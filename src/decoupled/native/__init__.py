"""Machine code that ships with the package: found, checked and called without a compiler.

`decoupled.builder` makes it, from the same functions that Numba compiles where none ships.
"""
