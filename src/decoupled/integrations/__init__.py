"""Plug-ins for gateways that others make."""
