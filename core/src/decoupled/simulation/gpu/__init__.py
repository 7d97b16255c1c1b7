"""Runs on NVIDIA GPUs: one thread plays a run from its first round to its last.

The device runs the CPU's code, `drive` and the functions of policies and adversaries, compiled
again for it. This package finds devices and decides how many runs fit (`memory`), wraps those loops
in kernels (`kernels`), and launches blocks of runs (`launch`).
"""
