"""Hot loops: NumPy and Numba only, arrays in and arrays out, no checks and no objects."""
