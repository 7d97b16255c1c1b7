"""Plug-ins for gateways, and adapters for libraries, that others make."""
