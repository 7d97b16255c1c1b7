"""What the replication report says. Every number in it comes from the results; text about the paper is fixed."""

from collections.abc import Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import Any

from ... import __version__
from ...report.claims import HOLDS, UNDECIDED, Claim
from ...report.document import (
    Block,
    Document,
    Drawing,
    Heading,
    Items,
    Listing,
    Notice,
    Paragraph,
    TextTable,
)
from ...report.page import formatted
from ...report.section import Section
from .. import EXPERIMENTS, GROUPS
from ..base import Scale
from ..runner import facts
from .claims import Judged, Numbered, claims_table, sorted_claims, summary_table, tally, verdict
from .readings import JUDGING, LIMITS, READINGS, REFERENCES, RULINGS, SETUP
from .slips import SLIPS

TITLE = "“Follow-the-Perturbed-Leader for Decoupled Bandits: Best-of-Both-Worlds and Practicality”: a replication"
AUTHOR = "The authors of the package decoupled"
LARGEST = (5, 20)  # columns and rows of a table that is shown here; report.html has the others


def replication(record: dict[str, Any], sections: Sequence[Section]) -> Document:
    """The document about a run, from its record and the sections of its report."""
    judged = sorted_claims(sections)
    shown = [section for section in sections if section.name not in GROUPS["beyond"]]
    parts = (
        notices(record, shown),
        repeated(shown),
        summary(judged, shown),
        experiments("The claims of the paper", judged.papers, shown, figures=True),
        experiments("Questions of ours", judged.ours, shown, figures=False),
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
        words.append(
            f"Of {len(papers)} claims that the paper makes and these results can judge, {tally(papers)}."
        )
    first = next((section for section in sections if section.name == "adversarial"), None)
    if first:
        said = [f"{policy} {mean} ({interval})" for policy, mean, interval, *_ in first.tables[0].rows]
        words.append(
            f"With alternating losses, K = 8 and gap 0.125, mean regrets with 95 % intervals are {', '.join(said)}."
        )
    if ours:
        words.append(f"Of {len(ours)} questions of ours, {tally(ours)}.")
    scale = next((claim for claim in ours if claim.id == "tuned-scale"), None)
    if scale:
        words.append(
            f"One is about how to read the lead of FTPL: {scale.statement} Verdict: {scale.verdict} ({formatted(scale.parts[0])})."
        )
    words.append(
        f"We also list {len(SLIPS)} slips in the text. None of them changes the order of a theorem."
    )
    if Scale(**record["scale"]).quick:
        words.insert(0, "**Quick version, with few runs.**")
    return " ".join(words)


def notices(record: dict[str, Any], sections: Sequence[Section]) -> Iterator[Block]:
    """What a reader must know before everything else."""
    scale = Scale(**record["scale"])
    if scale.quick:
        yield Notice(
            f"This is the **quick version**: {scale.runs:,} runs or fewer where the full one has 1,000. Many claims stay undecided. "
            "Do not cite its verdicts: `make paper` and `make replication` make the full version."
        )
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
        "The experiments and their sizes.", ("experiment", "in the paper", "size"), rows, (0.26, 0.22, 0.44)
    )
    yield Heading("Where the paper leaves a choice", 2)
    yield Items(RULINGS)
    yield Heading("How a claim is judged", 2)
    yield Paragraph(JUDGING)


def summary(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """The verdicts in one table, and what does not simply hold."""
    yield Heading("Summary of the verdicts")
    yield summary_table(judged, {section.name: section.title for section in sections})
    others = [each for some in judged.papers.values() for each in some if each.claim.verdict != HOLDS]
    if others:
        yield Paragraph(
            "Claims of the paper that do not hold as stated, or could not be decided (the next section has the measurements):"
        )
        yield Items(
            tuple(f"{each.number}, {each.claim.verdict}: {each.claim.statement}" for each in others)
        )
    elif judged.papers:
        yield Paragraph("Every claim of the paper that was judged holds.")


def experiments(
    title: str, claims: dict[str, list[Numbered]], sections: Sequence[Section], figures: bool
) -> Iterator[Block]:
    """A part for each experiment: reading, claims, figures and small tables."""
    if claims:
        yield Heading(title)
    for section in sections:
        if section.name not in claims:
            continue
        yield Heading(section.title, 2)
        own = figures or EXPERIMENTS[section.name].origin.startswith("ours")
        if own:
            yield Paragraph(f"{READINGS[section.name]} {section.extent}")
        yield claims_table(f"{section.title}: claims and verdicts.", claims[section.name])
        if not own:
            continue
        for picture in section.pictures:
            width = 0.6 if picture.columns == 1 else 1.0
            yield Drawing(f"{section.name}/{picture.name}", picture.title, picture.caption, width)
        for table in section.tables:
            if len(table.head) <= LARGEST[0] and len(table.rows) <= LARGEST[1]:
                yield TextTable(f"{section.title}: {table.title.lower()}.", table.head, table.rows)


def slips() -> Iterator[Block]:
    """The slips, each with how we know."""
    yield Heading("Slips in the text")
    yield Paragraph(
        "While writing the program and checking the proofs numerically, we found the following. We list them because they may help readers, and the authors with a revision. "
        "None changes the order of a theorem. The lines of code need `import decoupled as dc` and `from decoupled import theory`."
    )
    for slip in SLIPS:
        yield Heading(slip.place, 2)
        yield Paragraph(f"**Printed:** {slip.printed}")
        yield Paragraph(f"**Should be:** {slip.meant}")
        yield Paragraph(f"**How we know:** {slip.known}")
        yield Listing((*slip.code, f"# {slip.shows}"), "python")


def open_points(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """What could not be judged, and why."""
    yield Heading("What could not be judged")
    every = [each for kept in (judged.papers, judged.ours) for some in kept.values() for each in some]
    undecided = [f"{each.number}: {verdict(each.claim)}." for each in every if _undecided(each.claim)]
    run = {section.name for section in sections}
    missing = [
        each.title
        for name, each in EXPERIMENTS.items()
        if name not in run and not each.origin.startswith("ours")
    ]
    if missing:
        undecided.append(f"Not run in these results: {', '.join(missing)}.")
    if undecided:
        yield Paragraph("In these results:")
        yield Items(tuple(undecided))
    yield Paragraph("In any simulation of ours:")
    yield Items(LIMITS)


def _undecided(claim: Claim) -> bool:
    return not claim.judged or claim.verdict == UNDECIDED


def beyond(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """One paragraph on what is not about the paper."""
    yield Heading("Beyond the paper")
    words = "The package also has a policy of our own, `Ladder()`, which builds on the paper's idea that exploration needs no exact probabilities. It is not the subject of this document."
    if judged.beyond:
        titles = [section.title.lower() for section in sections if section.name in GROUPS["beyond"]]
        words += f" The same run judged {len(judged.beyond)} claims about it ({'; '.join(titles)}): {tally(judged.beyond)}. `report.html` and `claims.json` have them."
    yield Paragraph(words)


def how_to_repeat(record: dict[str, Any]) -> Iterator[Block]:
    """Commands, versions, machine and time; then the references."""
    scale = Scale(**record["scale"])
    yield Heading("How to repeat it")
    options = ["--quick"] * scale.quick + [f"--runs {scale.runs}", f"--seed {scale.seed}"]
    options += [f"--device {scale.device}"] * (scale.device != "cpu")
    yield Paragraph(
        "With the package installed, and MovieLens 100K in a folder that `DECOUPLED_DATA` names (it may not be redistributed), these commands make all results and this document. "
        "The same version, options and kind of processor give the same regrets to the bit; times differ. `make paper` and `make replication` do the same in a copy of the repository."
    )
    names = [] if _default(record, scale) else list(record["experiments"])
    command = " ".join(["decoupled reproduce", *names, *options, "--out results"])
    yield Listing((*_wrapped(command), "decoupled report results --replication"))
    known = {"judged and written by": f"decoupled {__version__}", **facts(record)}
    yield TextTable("How these results were made.", ("", ""), tuple(known.items()), (0.24, 0.68))
    yield Paragraph(
        "`report.html` beside this document has every figure and table in full, and `claims.json` every measurement."
    )
    yield Heading("References", numbered=False)
    yield Items(REFERENCES)


def _default(record: dict[str, Any], scale: Scale) -> bool:
    """Whether the run has the experiments that `reproduce` runs if none is named."""
    usual = {name for name, each in EXPERIMENTS.items() if each.in_quick or not scale.quick}
    return set(record["experiments"]) == usual


def _wrapped(command: str) -> tuple[str, ...]:
    """A command over several lines, with the mark by which a shell continues one."""
    lines = wrap(command, 76, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])
