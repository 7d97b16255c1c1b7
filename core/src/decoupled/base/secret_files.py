"""Secrets in files, as containers mount them."""

import os
from collections.abc import Mapping

from ..errors import ParameterError


def read_secret(name: str, path: str | os.PathLike[str]) -> str:
    r"""The content of a file with one secret, without the white space around it. Errors never show it.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "key"
    >>> _ = file.write_text("dk_example\n")
    >>> read_secret("DECOUPLED_KEY_FILE", file)
    'dk_example'
    """
    shown = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        rule = f"cannot be read ({reason})"
        raise ParameterError.of(name, shown, rule, "check the path and its permissions") from None
    if not found or "\n" in found:
        raise ParameterError.of(
            name, shown, "must contain one line", "write the secret to it, and nothing else"
        )
    return found


def secret_variable(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The value of a variable, or the content of the file that the variable `<name>_FILE` names.

    >>> secret_variable("DECOUPLED_KEY", {"DECOUPLED_KEY": "dk_example"})
    'dk_example'
    >>> secret_variable("DECOUPLED_KEY", {}) is None
    True
    """
    value, path = environ.get(name), environ.get(f"{name}_FILE")
    if value and path:
        raise ParameterError(f"{name}, {name}_FILE: both are set; unset one of them")
    return read_secret(f"{name}_FILE", path) if path else value or None
