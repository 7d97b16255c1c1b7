"""The foundations: arrays, validation, specifications, files."""
