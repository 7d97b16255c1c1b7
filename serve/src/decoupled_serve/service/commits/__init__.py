"""Running commands: the queue, the loop that commits them together, and the replies."""
