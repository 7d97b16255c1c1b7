"""The decision service: learners that run for other programs, with nothing lost.

`DecisionService` is all of it without HTTP. The log is the source of truth: a learner in memory can always be made
again from it, bit for bit.
"""
