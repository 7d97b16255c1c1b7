"""The last parts of the replication report: slips, open points, how to repeat it, and references."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from decoupled import __version__

from ...report.claims import UNDECIDED, Claim
from ...report.document import Block, Heading, Items, Listing, Paragraph, TextTable
from ...report.section import Section
from .. import EXPERIMENTS, GROUPS
from ..base import Scale
from ..runner import facts
from .claims import Judged, number_of, tally, verdict
from .readings import LIMITS, REFERENCES
from .slips import SLIPS


def slips() -> Iterator[Block]:
    """The slips, each with how we know."""
    yield Heading("Slips in the text")
    yield Paragraph(
        "While writing the program and checking the proofs numerically, we found the following. We list them because they may help readers, and the authors with a revision. "
        "None changes the order of a theorem. The lines of code need `import decoupled as dc` and `from decoupled_lab import theory`."
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
    if missing := not_run(sections):
        undecided.append(f"Not run in these results: {', '.join(missing)}.")
    if undecided:
        yield Paragraph("In these results:")
        yield Items(tuple(undecided))
    yield Paragraph("In any simulation of ours:")
    yield Items(LIMITS)


def not_run(sections: Sequence[Section]) -> list[str]:
    """The titles of the paper's experiments that these results lack."""
    run = {section.name for section in sections}
    papers = {name: each for name, each in EXPERIMENTS.items() if not each.origin.startswith("ours")}
    return [each.title for name, each in papers.items() if name not in run]


def _undecided(claim: Claim) -> bool:
    return not claim.judged or claim.verdict == UNDECIDED


def beyond(judged: Judged, sections: Sequence[Section]) -> Iterator[Block]:
    """One paragraph on what is not about the paper."""
    yield Heading("Beyond the paper")
    words = "The package also has a policy of our own, `Ladder()`, which builds on the paper's idea that exploration needs no exact probabilities. It is not the subject of this document."
    if judged.beyond:
        titles = [section.title.lower() for section in sections if section.name in GROUPS["beyond"]]
        words += f" The same run judged {number_of(judged.beyond, 'claim')} beyond the paper ({'; '.join(titles)}): {tally(judged.beyond)}. `report.html` and `claims.json` have them."
    yield Paragraph(words)


def how_to_repeat(record: dict[str, Any]) -> Iterator[Block]:
    """Commands, versions, machine and time; then the references."""
    scale = Scale(**record["scale"])
    yield Heading("How to repeat it")
    options = ["--quick"] * scale.quick + [f"--runs {scale.runs}", f"--seed {scale.seed}"]
    options += [f"--device {scale.device}"] * (scale.device != "cpu")
    yield Paragraph(
        "With `decoupled-bandits[cli,simulate,plots,conic]` installed, and MovieLens 100K in a folder that `DECOUPLED_DATA` names (it may not be redistributed), these commands make all results and this document. "
        "The same version, options and kind of processor give the same regrets to the bit; times differ. `make paper` and `make replication` do the same in a copy of the repository."
    )
    names = [] if _default(record, scale) else list(record["experiments"])
    command = " ".join(["decoupled reproduce", *names, *options, "--out results"])
    yield Listing((*_wrapped(command), "decoupled report results --replication"))
    known = {"judged and written by": f"decoupled {__version__}", **facts(record)}
    known = {name: "not recorded" if value == "None" else value for name, value in known.items()}
    yield TextTable("How these results were made.", ("what", "value"), tuple(known.items()), (0.24, 0.68))
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
