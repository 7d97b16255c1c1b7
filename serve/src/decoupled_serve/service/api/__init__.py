"""The parts of the service, one for each kind of call, and the commands that they run in the commit loop."""
