"""Fixtures of the examples in docstrings, which pytest runs where they stand, in src."""

from support.client_examples import client_examples, example_service

__all__ = ["client_examples", "example_service"]
