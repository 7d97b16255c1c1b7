"""Compiled kernels: arrays in, arrays out; no classes, no policy names."""
