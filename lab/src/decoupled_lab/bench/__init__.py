"""The measurements of `decoupled bench`: ratios of times taken within one run."""
