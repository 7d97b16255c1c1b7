"""Fixtures of the service's tests."""

from stores import address, clock, file, opened, postgres, server

__all__ = ["address", "clock", "file", "opened", "postgres", "server"]
