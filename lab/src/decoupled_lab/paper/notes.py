"""How we read the paper, and the slips in its text: what the report says beside its experiments."""

from html import escape
from typing import Any

from ..report.page import Section
from ..report.text import marked_as_html
from .base import read_texts, sheet

SLIPS = (
    "While writing the program and checking the proofs numerically, we found the following. We list them because they may "
    "help readers, and the authors with a revision. None changes the order of a theorem. The lines of code need "
    "`import decoupled as dc` and `from decoupled_lab import theory`."
)
CHOICES = "What the paper leaves open, and what we take."
LIMITS = "Beside the claims above that are undecided or not judged, no simulation of ours can judge these."


def reading_of(name: str) -> str:
    """How we read what the paper says of an experiment, as HTML; empty where there is nothing to add.

    >>> reading_of("grid")[:47]
    '<b>How we read the paper.</b> With the smallest'
    """
    text = read_texts("readings.toml")["experiments"].get(name)
    if text is None:
        return ""
    claims = sheet()
    text = text.replace("<flat>", str(claims["stochastic-flattens"]["below"]))
    text = text.replace("<ended>", str(claims["horizon-constant"]["below"]))
    return f"<b>How we read the paper.</b> {_as_html(text)}"


def notes() -> list[Section]:
    """The sections that follow the experiments.

    >>> [section.name for section in notes()]
    ['choices', 'slips', 'limits']
    """
    readings = read_texts("readings.toml")
    return [
        _section(
            "choices", "Where the paper leaves a choice", _listed(CHOICES, readings["choices"])
        ),
        _section("slips", "Slips in the text", _listed_slips()),
        _section("limits", "What could not be judged", _listed(LIMITS, readings["limits"])),
    ]


def slips() -> list[dict[str, str]]:
    """The slips: the place of each, what is printed and should be, how we know, and code that shows it.

    >>> len(slips())
    11
    """
    listed: list[dict[str, str]] = read_texts("slips.toml")["slip"]
    return listed


def _section(name: str, title: str, text: str) -> Section:
    return Section(text, (), (), name=name, title=title)


def _as_html(text: str) -> str:
    return marked_as_html(" ".join(text.split()))


def _listed(start: str, lines: dict[str, Any]) -> str:
    """A sentence, and a paragraph for each line; the page puts all of it into a paragraph."""
    paragraphs = [f"<b>{escape(name)}.</b> {_as_html(text)}" for name, text in lines.items()]
    return "</p><p>".join([_as_html(start), *paragraphs])


def _listed_slips() -> str:
    paragraphs = [_as_html(SLIPS)]
    heads = {"printed": "Printed", "should_be": "Should be", "evidence": "How we know"}
    for slip in slips():
        words = [f"<b>{head}:</b> {_as_html(slip[key])}" for key, head in heads.items()]
        code = escape(f"{slip['code'].strip()}\n# {slip['shows']}", quote=False)
        paragraphs.append("<br>".join([f"<b>{_as_html(slip['place'])}</b>", *words]))
        paragraphs[-1] += f"</p><pre>{code}</pre><p>"
    return "</p><p>".join(paragraphs)
