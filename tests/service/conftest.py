"""Fixtures of the service's tests."""

from support.stores import address, clock, file, opened, postgres, server, transactions

__all__ = ["address", "clock", "file", "opened", "postgres", "server", "transactions"]
