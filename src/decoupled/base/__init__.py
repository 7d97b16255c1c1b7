"""What every room builds on: arrays, validation, specifications, files."""
