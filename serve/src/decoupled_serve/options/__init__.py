"""The options of commands: one definition each, from which flags, variables, files and documentation follow."""
