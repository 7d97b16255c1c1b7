"""What the service can be asked to do: each a function over a session, run by the commit loop."""
