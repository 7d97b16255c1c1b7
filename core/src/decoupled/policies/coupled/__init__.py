"""Policies of the standard game, where the arm played is the arm seen."""
