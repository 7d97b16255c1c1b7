"""The command line: parsing, printing and progress; everything else is elsewhere."""


def main() -> None:
    """Run the command `decoupled`."""
    from .main import main as run

    run()
