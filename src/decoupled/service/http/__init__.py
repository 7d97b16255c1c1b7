"""HTTP over the desk: who may ask, how much, and in which shape."""
