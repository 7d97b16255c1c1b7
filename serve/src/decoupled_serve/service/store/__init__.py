"""The log on disk: one SQL text for SQLite and PostgreSQL."""
