"""One experiment: its settings, the rows of its log, its running learner, and its counts."""
