"""Analyses of the log and the store: exports, evaluations, and the checks of `decoupled doctor`."""
