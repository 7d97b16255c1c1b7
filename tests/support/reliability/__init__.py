"""What the service promises, tried on real processes: killed, paused, traced, and with a disk that is full.

`make test` runs these at their short sizes, `make reliability` at their long ones (see `sizes`).
"""
