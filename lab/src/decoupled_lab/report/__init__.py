"""Claims and the one-file HTML report, from saved results."""
