"""A replication report: what a run found about the paper, as one Markdown document.

`replication.md` beside this file is its template: the text about the paper, and how we read it, experiment by
experiment. Every number comes from the results. Where pandoc is installed, it makes LaTeX and a PDF from the document.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from itertools import count
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from PIL import Image

from decoupled import __version__
from decoupled.base import write_atomically
from decoupled.errors import UnsupportedError

from ..report.claims import HOLDS, LEAST_RUNS, UNDECIDED, Claim
from ..report.page import KINDS, ReportTable, Section, counted, formatted, needed_runs
from ..report.text import markdown, markdown_table
from . import EXPERIMENTS, GROUPS
from .base import Scale, sheet
from .runner import FULL_RUNS, facts, load

NAME = "replication"
LARGEST = (5, 20)  # columns and rows of a table that is shown here
MOST_PARTS = 8  # of a claim, in a table of their own; claims.json has all
AUTHORS = "Contributors to the Python package decoupled"
# Margins, smaller letters in tables and programs, and what makes a PDF searchable. Formulas write < as \\lt for Markdown.
_LATEX = {
    "papersize": "a4", "geometry": "margin=2.2cm", "fontsize": "10pt", "colorlinks": "true", "author-meta": AUTHORS,
    "header-includes": r"""\providecommand{\lt}{<}\providecommand{\gt}{>}
\usepackage{etoolbox,float,fvextra,caption}
\floatplacement{figure}{H}
\captionsetup{labelformat=empty,font=small,justification=raggedright,singlelinecheck=false}
\AtBeginEnvironment{longtable}{\footnotesize}
\setlength{\emergencystretch}{3em}
\AtBeginDocument{\DefineVerbatimEnvironment{Highlighting}{Verbatim}{commandchars=\\\{\},fontsize=\footnotesize,breaklines}}""",
}  # fmt: skip
_CAPTION = re.compile(r"^\*\*(Table|Figure)\.\*\*", re.MULTILINE)
_TABLE = re.compile(r"^\*\*(Table \d+\.)\*\*", re.MULTILINE)
_FIGURE = re.compile(r"^!\[.*\]\((.*)\.png\)\n\n(\*\*Figure .*)$", re.MULTILINE)
_QUOTE = re.compile(r"(?<!\w)'(.+?)'(?!\w)")  # not an apostrophe
_READING = re.compile(r"<!-- ([\w-]+) -->\n")
_ENDED = "<!-- Below:"  # the end of the document in the template


def write_replication(folder: Path, record: dict[str, Any], sections: Sequence[Section]) -> list[Path]:
    """Write the report beside the results and figures that it shows; return the files, Markdown alone without pandoc."""
    made = folder / f"{NAME}.md"
    document = replication(record, sections)
    write_atomically(made, document)
    others = [made.with_suffix(ending) for ending in (".tex", ".pdf")]
    for other in others:
        other.unlink(missing_ok=True)  # it would be that of other results
    program = shutil.which("pandoc")
    if program is None:
        return [made]
    if not (shutil.which("pdflatex") or shutil.which("xelatex")):
        others = others[:1]
    command = [program, "--from=markdown", "--shift-heading-level-by=-1", "--standalone"]
    command += [f"--metadata=author:{AUTHORS}", f"--metadata=date:{day(record)}"]
    command += [f"--variable={name}:{value}" for name, value in _LATEX.items()]
    if shutil.which("xelatex"):
        command.append("--pdf-engine=xelatex")
    for other in others:
        done = subprocess.run(
            [*command, f"--output={other.name}"],
            cwd=folder, input=captioned(document, folder), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise UnsupportedError(f"pandoc could not write {other}: {done.stderr.strip()[-500:]}")
    return [made, *others]


def captioned(document: str, folder: Path) -> str:
    """The document with captions that LaTeX keeps beside their tables and pictures, and pictures as drawings."""

    def shown(found: re.Match[str]) -> str:
        with Image.open(folder / f"{found[1]}.png") as picture:
            width, height = picture.size
        share = min(100 if width > 1_000 else 56, int(55 * width / height))
        return f"![{found[2]}]({found[1]}.pdf){{width={share}%}}"

    return _FIGURE.sub(shown, _TABLE.sub(r": **\1**", document))


def day(record: dict[str, Any]) -> str:
    """When the run began, such as 2 January 2026."""
    return f"{datetime.fromisoformat(record['when']):%-d %B %Y}"


def template() -> tuple[str, dict[str, str]]:
    """The document with names in place of what a run fills in, and the readings by the name of their experiment."""
    text = files(__package__).joinpath(f"{NAME}.md").read_text(encoding="utf-8")
    document, _, readings = text.partition(_ENDED)
    _, *found = _READING.split(readings)
    return document, dict(zip(found[::2], map(str.strip, found[1::2]), strict=True))


def replication(record: dict[str, Any], sections: Sequence[Section]) -> str:
    """The document about a run, from its record and the sections of its report."""
    judged = sorted_claims(sections)
    shown = [section for section in sections if section.name not in GROUPS["beyond"]]
    every = [each for kept in (judged.papers, judged.ours) for some in kept.values() for each in some]
    unknown = [each for each in every if not each.claim.judged or each.claim.verdict == UNDECIDED]
    undecided = [f"{each.number}: {verdict(each.claim)}." for each in unknown]
    if missing := not_run(shown):
        undecided.append(f"Not run in these results: {', '.join(missing)}.")
    known = {"judged and written by": f"decoupled {__version__}", **facts(record)}
    document, readings = template()
    made = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    made.filters |= {"md": markdown, "row": row, "is_small": is_small}
    made.globals |= {
        "markdown_table": markdown_table,
        "kinds": list(KINDS),
        "least_runs": LEAST_RUNS,
        "spelled": lambda claims: [line for each in claims for line in spelled(each)],
        "flat": sheet()["stochastic-flattens"]["below"],
        "ended": sheet()["horizon-constant"]["below"],
    }
    text = made.from_string(document).render(
        day=day(record),
        version=record["machine"]["decoupled-bandits"],
        commit=record.get("commit"),
        processor=record["machine"].get("cpu"),
        abstract=abstract(record, judged, shown),
        notices=notices(record, shown),
        shown=shown,
        sizes=[(each.title, EXPERIMENTS[each.name].origin, each.extent.rstrip(".")) for each in shown],
        judged=judged,
        readings={name: made.from_string(reading).render() for name, reading in readings.items()},
        summary=summary(judged, shown),
        others=[each for some in judged.papers.values() for each in some if each.claim.verdict != HOLDS],
        undecided=undecided,
        beyond=beyond(judged, sections),
        command=_command(record),
        facts=[(name, "not recorded" if value == "None" else value) for name, value in known.items()],
    )
    numbers = {"Table": count(1), "Figure": count(1)}  # each caption gets the next
    text = _CAPTION.sub(lambda found: f"**{found[1]} {next(numbers[found[1]])}.**", text)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


class Numbered(NamedTuple):
    """A claim with its number in the document, such as C3."""

    number: str
    claim: Claim


class Judged(NamedTuple):
    """The claims of each experiment, by its name."""

    papers: dict[str, list[Numbered]]
    ours: dict[str, list[Numbered]]
    beyond: list[Claim]


def claims_of(kept: Iterable[Sequence[Numbered]]) -> list[Claim]:
    """The claims of all experiments."""
    return [each.claim for some in kept for each in some]


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


def verdict(claim: Claim) -> str:
    """The verdict, and for an undecided claim about how many runs would decide it."""
    more = needed_runs(claim)
    return f"**{claim.verdict}**{': ' if more else ''}{more}"


def measured(claim: Claim) -> str:
    """The measurement that decides."""
    if not claim.judged or not claim.parts:
        return "not measured on the data that the claim is about" if claim.parts else "not measured"
    worst = claim.parts[0]
    which = f"; {worst.of}, the closest of {len(claim.parts)}" if len(claim.parts) > 1 else ""
    return f"{claim.statistic}: {formatted(worst)}{which}. Claimed: {claim.threshold}"


def row(each: Numbered) -> tuple[str, ...]:
    """A claim in a table, with its place in the paper."""
    claim, place = each.claim, _QUOTE.sub(r"“\1”", each.claim.place)
    stated = claim.statement if place == "ours" else f"{claim.statement} ({place})"
    return each.number, stated, measured(claim), verdict(claim)


def spelled(each: Numbered) -> list[tuple[str, str, str]]:
    """All measurements of a claim that does not simply hold, unless they are too many."""
    claim = each.claim
    if not claim.judged or claim.verdict == HOLDS or not 1 < len(claim.parts) <= MOST_PARTS:
        return []
    return [(each.number, part.of, formatted(part)) for part in claim.parts]


def is_small(table: ReportTable) -> bool:
    """Whether a table is shown here; report.html has the others."""
    return len(table.head) <= LARGEST[0] and len(table.rows) <= LARGEST[1]


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
    words = {
        "hold": ("holds", "hold"),
        "hold in part": ("holds in part", "hold in part"),
        "fail": ("fails", "fail"),
        "undecided": ("is undecided", "are undecided"),
        "not judged": ("could not be judged", "could not be judged"),
    }
    said = [f"{many} {words[kind][many > 1]}" for kind, many in counted(claims).items()]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])}, and {said[-1]}"


def abstract(record: dict[str, Any], judged: Judged, sections: Sequence[Section]) -> str:
    """The findings, with the numbers of this run."""
    papers, ours = claims_of(judged.papers.values()), claims_of(judged.ours.values())
    words = [
        "We repeated the experiments of Kim, Lee and Oh (2026) with a program written from the text of their paper."
    ]
    if papers:
        said = f"We state {number_of(papers, 'claim')} of the paper in a form that can be measured"
        words += [f"{said}: {tally(papers)}.", f"{by_subject(judged)}."]
    first = next((section for section in sections if section.name == "adversarial"), None)
    if first:
        regrets = ", ".join(
            f"{policy} {mean} ({interval})" for policy, mean, interval, *_ in first.tables[0].rows
        )
        words.append(
            f"With alternating losses, K = 8 and gap 0.125, mean regrets with 95 % intervals are {regrets}."
        )
    if ours:
        words.append(f"Of {number_of(ours, 'further statement')} of ours, {tally(ours)}.")
    scale = next((claim for claim in ours if claim.id == "tuned-scale"), None)
    if scale:
        found = f"{scale.verdict}; {scale.statistic}, {scale.parts[0].of}: {formatted(scale.parts[0])}"
        words.append(f"One bears on how FTPL's lead is read: “{scale.statement}” Verdict: {found}.")
    slips = template()[0].count("**Printed:**")
    words.append(f"We also list {slips} slips in the text. None of them changes the order of a theorem.")
    if Scale(**record["scale"]).quick:
        words.insert(0, "**Quick version, with few runs.**")
    return " ".join(words)


def by_subject(judged: Judged) -> str:
    """The verdicts on regret and those on time, which depend on the machine."""
    kinds: dict[str, list[Claim]] = {"regret": [], "time": []}
    for name, claims in judged.papers.items():
        kinds["time" if load(name).times else "regret"] += claims_of([claims])
    said = [f"{len(claims)} about {kind}, {tally(claims)}" for kind, claims in kinds.items() if claims]
    return f"Of {'; of '.join(said)}"


def notices(record: dict[str, Any], sections: Sequence[Section]) -> Iterator[str]:
    """What a reader must know before everything else."""
    scale = Scale(**record["scale"])
    if scale.quick:
        yield (
            f"This is the **quick version**: {scale.runs:,} runs or fewer where the paper has {FULL_RUNS:,}. Many claims stay undecided. "
            "Do not cite its verdicts. `make paper` and `make replication` make the full version."
        )
    elif scale.runs < FULL_RUNS:
        yield f"These results have {scale.runs:,} runs where the paper has {FULL_RUNS:,}."
    if missing := not_run(sections):
        yield f"Some experiments of the paper were not run: {', '.join(missing)}."
    for section in sections:
        yield from section.warnings


def not_run(sections: Sequence[Section]) -> list[str]:
    """The titles of the paper's experiments that these results lack."""
    run = {section.name for section in sections}
    papers = {name: each for name, each in EXPERIMENTS.items() if not each.origin.startswith("ours")}
    return [each.title for name, each in papers.items() if name not in run]


def summary(judged: Judged, sections: Sequence[Section]) -> list[tuple[str, ...]]:
    """The number of verdicts of each kind, by experiment and in all."""
    titles = {section.name: section.title for section in sections}

    def line(name: str, claims: Sequence[Claim]) -> tuple[str, ...]:
        number = counted(claims)
        return (name, *(str(number.get(kind, "")) for kind in KINDS), str(len(claims)))

    lines = []
    for kept, name in ((judged.papers, "claims of the paper"), (judged.ours, "statements of ours")):
        for each, some in kept.items():
            span = " to ".join(dict.fromkeys((some[0].number, some[-1].number)))
            lines.append(line(f"{titles[each]} ({span})", claims_of([some])))
        lines.append(line(f"**All {name}**", claims_of(kept.values())))
    return lines


def beyond(judged: Judged, sections: Sequence[Section]) -> str:
    """One sentence on what is not about the paper; empty if nothing was run."""
    if not judged.beyond:
        return ""
    titles = [section.title.lower() for section in sections if section.name in GROUPS["beyond"]]
    return f" The same run judged {number_of(judged.beyond, 'claim')} beyond the paper ({'; '.join(titles)}): {tally(judged.beyond)}. `report.html` and `claims.json` have them."


def _command(record: dict[str, Any]) -> str:
    """The command that makes these results, over several lines if it is long."""
    scale = Scale(**record["scale"])
    options = ["--quick"] * scale.quick + [f"--runs {scale.runs}", f"--seed {scale.seed}"]
    options += [f"--device {scale.device}"] * (scale.device != "cpu")
    usual = {name for name, each in EXPERIMENTS.items() if each.in_quick or not scale.quick}
    names = [] if set(record["experiments"]) == usual else list(record["experiments"])
    command = " ".join(["decoupled reproduce", *names, *options, "--out results"])
    lines = wrap(command, 76, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines)
