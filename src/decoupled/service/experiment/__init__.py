"""One experiment: its settings, its log as rows, its learner as it runs, and its tallies."""
