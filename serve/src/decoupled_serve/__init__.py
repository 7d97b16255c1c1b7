"""Decoupled bandits for teams: the decision service, the mirror, and what gateways need."""

__version__ = "0.2.0"
