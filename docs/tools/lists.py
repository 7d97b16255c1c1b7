"""Fills in what the pages list: a line such as `<!-- list: policies -->` becomes every policy of the package.

The lists are those that the package itself reads, so a new policy, environment or experiment is on its page
without an edit there. A policy or an environment that the page names by hand is not repeated.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from decoupled.client import errors
from decoupled.environments import Environment
from decoupled.policies import Policy
from decoupled_lab.paper import EXPERIMENTS
from decoupled_lab.theory import bounds, figures
from decoupled_serve.options.definitions import CONFIG, MIRROR, SERVE, Option

sys.path.insert(0, str(Path(__file__).parent))
import leaderboard
import measurements
import program_lists

MARKER = re.compile(r"^<!-- list: ([\w-]+) -->$", re.MULTILINE)


def references(package: str, homes: dict[str, str], page: str) -> str:
    """A reference to each name: what is in a file of the package first, then what is in a folder of it.

    >>> print(references("a", {"Z": "a.b.c.z", "Y": "a.b.y", "X": "a.b.x"}, "::: a.X"))
    ::: a.Y
    <BLANKLINE>
    ::: a.Z
    """
    named = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    order = sorted(homes, key=lambda name: (homes[name].count("."), name.lower()))
    return "\n\n".join(
        f"::: {package}.{name}" for name in order if f"{package}.{name}" not in named
    )


def policies(page: str) -> str:
    """Every policy, as a reference to its docstring."""
    return references("decoupled", Policy.homes, page)


def environments(page: str) -> str:
    """Every environment, as a reference to its docstring."""
    return references("decoupled.environments", Environment.homes, page)


def members(package: str, names: Iterable[str], page: str) -> str:
    """A reference to each name that the page does not have yet, in order, under a heading of its own.

    >>> print(members("a", ["X", "Y"], "::: a.X"))
    ::: a.Y
        options: {heading_level: 3}
    """
    named = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    new = (f"{package}.{name}" for name in names if f"{package}.{name}" not in named)
    return "\n\n".join(f"::: {name}\n    options: {{heading_level: 3}}" for name in new)


def _service_errors(page: str) -> str:
    """Every error of the service, as a reference to its docstring."""
    return members(
        "decoupled.client",
        (
            name
            for name, each in vars(errors).items()
            if isinstance(each, type)
            and issubclass(each, errors.ServiceError)
            and name
            not in ("Unreachable", "UndeliveredFeedback")  # the page of the clients has these
        ),
        page,
    )


def experiments(page: str) -> str:
    """The experiments of `decoupled reproduce`, in a table."""
    rows = (f"| `{name}` | {each.about} | {each.origin} |" for name, each in EXPERIMENTS.items())
    return "\n".join(("| experiment | what it is | where it comes from |", "|---|---|---|", *rows))


def settings_table(options: Iterable[Option], *, keys: bool = False) -> str:
    """The options for docs/settings.md: flag, default and meaning, and the key where it does not follow from the flag."""
    lines = [
        f"| option |{' key |' if keys else ''} default | what it sets |",
        f"|{'---|' * (4 if keys else 3)}",
    ]
    for each in options:
        default = f"`{each.shown_default}`" if each.shown_default else ""
        key = f" `{each.key}` |" if keys else ""
        lines.append(f"| `{each.flag}` |{key} {default} | {each.meaning} |")
    return "\n".join(lines)


LISTS: dict[str, Callable[[str], str]] = {
    "policies": policies,
    "environments": environments,
    "experiments": experiments,
    "serve_settings": lambda page: settings_table((CONFIG, *SERVE)),
    "mirror_settings": lambda page: settings_table(MIRROR, keys=True),
    "commands": program_lists.commands,
    "requests": program_lists.requests,
    "experiment_fields": lambda page: program_lists.fields("ExperimentIn"),
    "decision_fields": lambda page: program_lists.fields("DecideIn"),
    "mirror_keys": program_lists.mirror_keys,
    "service_errors": _service_errors,
    "bounds": lambda page: members("decoupled_lab.theory.bounds", bounds.__all__, page),
    "theory_figures": lambda page: members("decoupled_lab.theory.figures", figures.__all__, page),
    "leaderboard": lambda page: leaderboard.tables(),
    "measurements": lambda page: measurements.tables(),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page, before it is made into HTML."""
    return MARKER.sub(lambda found: LISTS[found[1]](markdown), markdown)
