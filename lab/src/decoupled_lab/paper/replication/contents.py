"""What the replication report says. Every number in it comes from the results; text about the paper is fixed."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ...report.claims import HOLDS, Claim
from ...report.document import Block, Document, Heading, Items, Notice, Paragraph, TextTable
from ...report.page import formatted
from ...report.paper_tables import drawings
from ...report.section import Section
from .. import EXPERIMENTS, GROUPS
from ..base import Scale
from ..runner import FULL_RUNS, load
from .claims import Judged, Numbered, claims_table, number_of, sorted_claims, summary_table, tally
from .closing import beyond, how_to_repeat, not_run, open_points, slips
from .readings import JUDGING, READINGS, RULINGS, SETUP
from .slips import SLIPS

TITLE = "“Follow-the-Perturbed-Leader for Decoupled Bandits: Best-of-Both-Worlds and Practicality”: a replication"
AUTHOR = "The decoupled authors"
LARGEST = (5, 20)  # columns and rows of a table that is shown here; report.html has the others


def replication(record: dict[str, Any], sections: Sequence[Section]) -> Document:
    """The document about a run, from its record and the sections of its report."""
    judged = sorted_claims(sections)
    shown = [section for section in sections if section.name not in GROUPS["beyond"]]
    parts = (
        notices(record, shown),
        repeated(shown),
        summary(judged, shown),
        claims_of_the_paper(judged, shown),
        statements_of_ours(judged, shown),
        slips(),
        open_points(judged, shown),
        beyond(judged, sections),
        how_to_repeat(record),
    )
    day = str(record["when"])[:10]
    return Document(TITLE, AUTHOR, day, abstract(record, judged, shown), tuple(chain.from_iterable(parts)))


def abstract(record: dict[str, Any], judged: Judged, sections: Sequence[Section]) -> str:
    """The findings, with the numbers of this run."""
    papers, ours = judged.all_papers(), judged.all_ours()
    words = [
        "We repeated the experiments of Kim, Lee and Oh (2026) with a program written from the text of their paper."
    ]
    if papers:
        count = number_of(papers, "claim")
        words.append(f"We state {count} of the paper in a form that can be measured: {tally(papers)}.")
        words.append(f"{by_subject(judged)}.")
    first = next((section for section in sections if section.name == "adversarial"), None)
    if first:
        said = [f"{policy} {mean} ({interval})" for policy, mean, interval, *_ in first.tables[0].rows]
        words.append(
            f"With alternating losses, K = 8 and gap 0.125, mean regrets with 95 % intervals are {', '.join(said)}."
        )
    if ours:
        words.append(f"Of {number_of(ours, 'further statement')} of ours, {tally(ours)}.")
    scale = next((claim for claim in ours if claim.id == "tuned-scale"), None)
    if scale:
        worst = scale.parts[0]
        words.append(
            f"One bears on how FTPL's lead is read: “{scale.statement}” Verdict: {scale.verdict}; {scale.statistic}, {worst.of}: {formatted(worst)}."
        )
    words.append(
        f"We also list {len(SLIPS)} slips in the text. None of them changes the order of a theorem."
    )
    if Scale(**record["scale"]).quick:
        words.insert(0, "**Quick version, with few runs.**")
    return " ".join(words)


def by_subject(judged: Judged) -> str:
    """The verdicts on regret and those on time, which depend on the machine."""
    kinds: dict[str, list[Claim]] = {"regret": [], "time": []}
    for name, claims in judged.papers.items():
        kinds["time" if load(name).times else "regret"] += [each.claim for each in claims]
    said = [f"{len(claims)} about {kind}, {tally(claims)}" for kind, claims in kinds.items() if claims]
    return f"Of {'; of '.join(said)}"


def notices(record: dict[str, Any], sections: Sequence[Section]) -> Iterator[Block]:
    """What a reader must know before everything else."""
    scale = Scale(**record["scale"])
    if scale.quick:
        yield Notice(
            f"This is the **quick version**: {scale.runs:,} runs or fewer where the paper has {FULL_RUNS:,}. Many claims stay undecided. "
            "Do not cite its verdicts. `make paper` and `make replication` make the full version."
        )
    elif scale.runs < FULL_RUNS:
        yield Notice(f"These results have {scale.runs:,} runs where the paper has {FULL_RUNS:,}.")
    if missing := not_run(sections):
        yield Notice(f"Some experiments of the paper were not run: {', '.join(missing)}.")
    for section in sections:
        for warning in section.warnings:
            yield Notice(warning)


def repeated(sections: Sequence[Section]) -> Iterator[Block]:
    """The experiments, and how the paper was read."""
    yield Heading("What was repeated")
    yield Paragraph(SETUP)
    rows = tuple(
        (each.title, EXPERIMENTS[each.name].origin, each.extent.removesuffix(".")) for each in sections
    )
    yield TextTable(
        "The experiments and their sizes.", ("experiment", "in the paper", "size"), rows, (0.27, 0.17, 0.47)
    )
    yield Heading("Where the paper leaves a choice", 2)
    yield Items(RULINGS if any(each.name == "baseline" for each in sections) else RULINGS[:-1])
    yield Heading("How a claim is judged", 2)
    yield Paragraph(JUDGING)


def summary(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """The verdicts in one table, and what does not simply hold."""
    yield Heading("Summary of the verdicts")
    yield summary_table(judged, {section.name: section.title for section in sections})
    others = [each for some in judged.papers.values() for each in some if each.claim.verdict != HOLDS]
    if others:
        yield Paragraph(
            "Claims of the paper that do not hold as stated, or that could not be decided (“The claims of the paper” has the measurements):"
        )
        yield Items(
            tuple(f"{each.number} ({each.claim.verdict}): {each.claim.statement}" for each in others)
        )
    elif judged.papers:
        yield Paragraph("Every claim of the paper holds.")


def claims_of_the_paper(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """A part for each experiment of the paper: reading, claims, figures and small tables."""
    if judged.papers:
        yield Heading("The claims of the paper")
    for section in sections:
        claims = judged.papers.get(section.name)
        if claims is None:
            continue
        yield from experiment(section, claims)
        if any(each.claim.judged for each in claims):  # otherwise what was measured is not about the paper
            yield from drawings(section, section.pictures)
            yield from tables(section)


def statements_of_ours(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """A part for each experiment of ours that bears on the paper, with its main figure."""
    if judged.ours:
        yield Heading("Statements of ours")
    for section in sections:
        if section.name in judged.ours:
            of_paper = section.name in judged.papers  # then its reading and figures have been shown
            yield from experiment(section, judged.ours[section.name], read=not of_paper)
            yield from drawings(section, () if of_paper else section.pictures[:1])


def experiment(section: Section, claims: Sequence[Numbered], read: bool = True) -> Iterator[Block]:
    """How the paper was read, and the verdicts."""
    yield Heading(section.title, 2)
    if read:
        yield Paragraph(READINGS[section.name])
    yield claims_table(f"{section.title}: claims and verdicts.", claims)


def tables(section: Section) -> Iterator[TextTable]:
    """The tables of the report that are small enough."""
    for table in section.tables:
        if len(table.head) <= LARGEST[0] and len(table.rows) <= LARGEST[1]:
            yield TextTable(f"{section.title}: {table.title.lower()}.", table.head, table.rows)
