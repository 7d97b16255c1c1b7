"""The decision service: learners that run for other programs and lose nothing.

`Desk` is everything the service can do, without HTTP; what is above it speaks HTTP, what is below it
keeps the log. The log is the truth: a learner in memory can always be made again from it, bit for bit.
"""
