"""How functions are compiled: numba's options and cache, linking, functions called by address."""
