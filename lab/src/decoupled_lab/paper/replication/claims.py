"""The claims of a run, numbered: the paper's, and statements of ours. What goes beyond the paper is only counted."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...report.claims import HOLDS, Claim
from ...report.document import TextTable
from ...report.page import KINDS, counted, formatted, needed_runs
from ...report.section import Section
from .. import EXPERIMENTS, GROUPS

MOST_PARTS = 8  # shown in a cell; claims.json has all
_QUOTE = re.compile(r"(?<!\w)'(.+?)'(?!\w)")  # not an apostrophe


class Numbered(NamedTuple):
    """A claim with its number in the document, such as C3."""

    number: str
    claim: Claim


class Judged(NamedTuple):
    """The claims of each experiment, by its name."""

    papers: dict[str, list[Numbered]]
    ours: dict[str, list[Numbered]]
    beyond: list[Claim]

    def all_papers(self) -> list[Claim]:
        """The claims of the paper."""
        return [each.claim for some in self.papers.values() for each in some]

    def all_ours(self) -> list[Claim]:
        """The statements of ours."""
        return [each.claim for some in self.ours.values() for each in some]


def sorted_claims(sections: Sequence[Section]) -> Judged:
    """The claims by whose they are.

    A claim is the paper's if it is about a sentence of the paper and was measured in an experiment of the paper. An
    experiment of ours judges statements of ours, even if a sentence or a theorem of the paper gave rise to them.
    """
    papers: dict[str, list[Numbered]] = {}
    ours: dict[str, list[Numbered]] = {}
    beyond: list[Claim] = []
    counts = {"C": 0, "S": 0}
    for section in sections:
        for claim in section.claims:
            if section.name in GROUPS["beyond"]:
                beyond.append(claim)
                continue
            is_ours = EXPERIMENTS[section.name].origin.startswith("ours") or claim.place.startswith("ours")
            letter, kept = ("S", ours) if is_ours else ("C", papers)
            counts[letter] += 1
            kept.setdefault(section.name, []).append(Numbered(f"{letter}{counts[letter]}", claim))
    return Judged(papers, ours, beyond)


def claims_table(caption: str, claims: Sequence[Numbered]) -> TextTable:
    """Statement, place, measurement and verdict of each claim."""
    rows = tuple(
        (each.number, stated(each.claim), measured(each.claim), verdict(each.claim)) for each in claims
    )
    head = ("", "claim, and its place", "measured, with 95 % interval", "verdict")
    return TextTable(caption, head, rows, (0.035, 0.36, 0.36, 0.13), ruled=True)


def stated(claim: Claim) -> str:
    """The statement, and its place in the paper."""
    place = _QUOTE.sub(r"“\1”", claim.place)
    return claim.statement if place == "ours" else f"{claim.statement} ({place})"


def verdict(claim: Claim) -> str:
    """The verdict, and for an undecided claim about how many runs would decide it."""
    more = needed_runs(claim)
    return f"**{claim.verdict}**{': ' if more else ''}{more}"


def measured(claim: Claim) -> str:
    """The measurement that decides, or all of them if the claim does not simply hold."""
    if not claim.judged or not claim.parts:
        return "not measured on the data that the claim is about" if claim.parts else "not measured"
    worst = claim.parts[0]
    if len(claim.parts) == 1:
        found = f"{claim.statistic}: {formatted(worst)}"
    elif claim.verdict == HOLDS or len(claim.parts) > MOST_PARTS:
        found = f"{claim.statistic}, the closest of {len(claim.parts)} ({worst.of}): {formatted(worst)}"
    else:
        found = f"{claim.statistic}: {'; '.join(f'{part.of}: {formatted(part)}' for part in claim.parts)}"
    return f"{found}. Claimed: {claim.threshold}"


def number_of(claims: Sequence[Claim], word: str) -> str:
    """How many there are, with the word for them.

    >>> number_of([], "claim")
    '0 claims'
    """
    return f"{len(claims)} {word}{'' if len(claims) == 1 else 's'}"


def tally(claims: Sequence[Claim]) -> str:
    """The verdicts in words.

    >>> claim = Claim("a", "", "", "", "", (), HOLDS)
    >>> tally([claim, claim, claim._replace(verdict="undecided")])
    '2 hold, and 1 is undecided'
    """
    number = counted(claims)
    words = {
        "hold": ("holds", "hold"),
        "hold in part": ("holds in part", "hold in part"),
        "fail": ("fails", "fail"),
        "undecided": ("is undecided", "are undecided"),
        "not judged": ("could not be judged", "could not be judged"),
    }
    said = [f"{many} {words[kind][many > 1]}" for kind, many in number.items()]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])}, and {said[-1]}"


def summary_table(judged: Judged, titles: dict[str, str]) -> TextTable:
    """How many claims of each experiment have each kind of verdict."""

    def row(name: str, claims: Sequence[Claim]) -> tuple[str, ...]:
        number = counted(claims)
        return (name, *(str(number.get(kind, "")) for kind in KINDS), str(len(claims)))

    rows = [
        row(f"{titles[name]} ({some[0].number}{f' to {some[-1].number}' if len(some) > 1 else ''})", [each.claim for each in some])
        for kept in (judged.papers, judged.ours)
        for name, some in kept.items()
    ]  # fmt: skip
    rows.insert(len(judged.papers), row("**All claims of the paper**", judged.all_papers()))
    rows.append(row("**All statements of ours**", judged.all_ours()))
    widths = (0.38, *(0.0 for _ in KINDS), 0.0)
    return TextTable("Verdicts by experiment.", ("", *KINDS, "in all"), tuple(rows), widths)
