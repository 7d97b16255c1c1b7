"""The random stream, and draws from it."""
