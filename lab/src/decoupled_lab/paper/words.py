"""What the report says: the claims and the numbers that decide them in `claims.toml`, other texts in `sections.toml`."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ..report.claims import Claim, Measure, judged_above, judged_below, judged_within, not_judged


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


def sheet() -> dict[str, dict[str, Any]]:
    """Every claim by its name."""
    return _read("claims.toml")


def told(name: str) -> str:
    """The text of an experiment's section."""
    return " ".join(_read("sections.toml")[name].split())


def judge(name: str, parts: Sequence[Measure], ending: str = "", **filled: str) -> Claim:
    """The verdict on a claim. `filled` are its words that a run decides; `ending` is added to its name.

    >>> judge("horizon-constant", [Measure("easy", 0.02, 0.01, 0.03)], last="100").verdict
    'holds'
    """
    said, words = sheet()[name], _words(name, filled)
    if "between" in said:
        return judged_within(name + ending, *words, parts, *said["between"])
    if "above" in said:
        return judged_above(name + ending, *words, parts, said["above"])
    return judged_below(name + ending, *words, parts, said["below"])


def unmeasured(name: str, reason: str) -> Claim:
    """A claim for which nothing could be measured."""
    return not_judged(Claim(name, *_words(name, {}), "", (), ""), reason)


def _words(name: str, filled: Mapping[str, str]) -> tuple[str, str, str]:
    """The place, the statement and the statistic."""
    said = {"place": "ours", **sheet()[name]}
    place, statement, statistic = (
        re.sub(r"<<(\w+)>>", lambda found: filled[found[1]], said[part])
        for part in ("place", "statement", "statistic")
    )
    return place, statement, statistic
