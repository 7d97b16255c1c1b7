"""FTPL with centred losses: the policy and its compiled functions."""
