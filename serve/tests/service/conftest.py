"""Fixtures of the service's tests."""

from support.stores import _services_end, address, clock, file, opened, postgres, server, transactions

__all__ = ["_services_end", "address", "clock", "file", "opened", "postgres", "server", "transactions"]
