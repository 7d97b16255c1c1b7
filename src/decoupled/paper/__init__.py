"""The paper's experiments and ours: one file each, with specification, claims and pictures."""
