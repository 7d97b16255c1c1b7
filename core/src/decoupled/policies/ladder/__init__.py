"""The ladder: the policy, its state, and its compiled functions."""
