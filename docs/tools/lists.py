"""Fills in what the pages list: a line such as `<!-- list: policies -->` becomes every policy of the package.

The lists are those that the package itself reads, so a new policy, environment or experiment is on its page
without an edit there. A policy or an environment that the page names by hand is not repeated.
"""

import re
from collections.abc import Callable
from typing import Any

from decoupled.environments import Environment
from decoupled.paper.runner import EXPERIMENTS
from decoupled.policies import Policy

MARKER = re.compile(r"^<!-- list: (\w+) -->$", re.MULTILINE)


def references(package: str, homes: dict[str, str], page: str) -> str:
    """A reference to each name: what is in a file of the package first, then what is in a folder of it.

    >>> print(references("a", {"Z": "a.b.c.z", "Y": "a.b.y", "X": "a.b.x"}, "::: a.X"))
    ::: a.Y
    <BLANKLINE>
    ::: a.Z
    """
    named = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    order = sorted(homes, key=lambda name: (homes[name].count("."), name.lower()))
    return "\n\n".join(f"::: {package}.{name}" for name in order if f"{package}.{name}" not in named)


def policies(page: str) -> str:
    """Every policy, as a reference to its docstring."""
    return references("decoupled", Policy.homes, page)


def environments(page: str) -> str:
    """Every environment, as a reference to its docstring."""
    return references("decoupled.environments", Environment.homes, page)


def experiments(page: str) -> str:
    """The experiments of `decoupled reproduce`, in a table."""
    rows = (f"| `{name}` | {each.about} | {each.origin} |" for name, each in EXPERIMENTS.items())
    return "\n".join(("| experiment | what it is | where it comes from |", "|---|---|---|", *rows))


LISTS: dict[str, Callable[[str], str]] = {
    "policies": policies,
    "environments": environments,
    "experiments": experiments,
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page, before it is made into HTML."""
    return MARKER.sub(lambda found: LISTS[found[1]](markdown), markdown)
