"""`decoupled` as a user calls it, in this process."""

from typing import Any

from typer.testing import CliRunner, Result

from decoupled.cli.main import app


def run(*words: object, **how: Any) -> Result:
    """Call it with these words."""
    return CliRunner().invoke(app, [str(each) for each in words], **how)


def said(*words: object, **how: Any) -> str:
    """What a command prints that succeeds."""
    done = run(*words, **how)
    assert done.exit_code == 0, done.output
    return done.stdout
