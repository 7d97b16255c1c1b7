"""From the socket to a route and back."""
