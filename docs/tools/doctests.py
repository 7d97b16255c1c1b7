"""Shows the examples of docstrings as code: Markdown would render `>>>` as a nested quotation."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?=.*\S).*)*", re.MULTILINE)  # to the next empty line


def fenced(text: str) -> str:
    r"""Put a fence around every example and its output.

    >>> print(fenced("One and one:\n\n>>> 1 + 1\n2"))
    One and one:
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)


class Doctests(Extension):
    """Fences the examples in every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring, before it is parsed."""
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
