"""Mirrors and their upstreams, for tests."""
