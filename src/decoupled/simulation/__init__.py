"""Simulation: policies against environments, many runs at once."""
