"""The command line: parsing, printing and progress."""

from ..base.extras import as_missing_extra


def run() -> None:
    """Run the command `decoupled`."""
    try:
        from .main import main
    except ModuleNotFoundError as error:
        raise SystemExit(f"error: {as_missing_extra(error, 'the command line') or error}") from None
    main()


main = run  # the name of the console script, until the submodule of that name is imported
