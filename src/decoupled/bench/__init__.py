"""What `decoupled bench` measures: ratios of times taken within one run."""
