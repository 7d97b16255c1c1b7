"""Writes what to serve into a gateway that is already there: nginx, HAProxy, a Gateway API route, or JSON."""
