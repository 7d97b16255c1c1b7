"""The command line: parsing, printing and progress."""

from ..base.extras import as_missing_extra


def main() -> None:
    """Run the command `decoupled`."""
    try:
        from .main import main as run
    except ModuleNotFoundError as error:
        raise SystemExit(f"error: {as_missing_extra(error, 'the command line') or error}") from None
    run()
