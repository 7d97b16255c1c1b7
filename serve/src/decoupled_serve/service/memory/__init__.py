"""Experiments in memory: restored, compiled, kept up to date and dropped again."""
