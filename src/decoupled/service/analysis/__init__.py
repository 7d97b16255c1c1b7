"""What is read from the log and the store: exports, evaluations, and whether all is well."""
