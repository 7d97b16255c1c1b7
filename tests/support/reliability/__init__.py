"""Test the service's promises on real processes: killed, paused, traced, and with a full disk.

`make test` runs these at their short sizes, `make reliability` at their long ones (see `sizes`).
"""
