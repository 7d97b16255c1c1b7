"""The command line: parsing, printing and progress."""


def main() -> None:
    """Run the command `decoupled`."""
    from .main import main as run

    run()
