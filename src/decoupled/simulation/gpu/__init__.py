"""Runs on NVIDIA GPUs: one thread plays a run from its first round to its last.

The code that is played is the CPU's own, `drive` and the policies' and adversaries' functions, compiled once
more for the device. What is here: finding devices (`devices`), the kernels around those loops (`kernels`),
how many runs go at once and in how much memory (`sizes`), and a block of runs (`block`, `execution`).
"""
