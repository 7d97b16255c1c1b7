"""The service over HTTP: authentication, limits, routes and JSON."""
