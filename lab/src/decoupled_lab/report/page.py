"""The folder of a report: one HTML page, its claims as data, its figures, and tables for LaTeX."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from decoupled import __version__
from decoupled.base import write_atomically
from decoupled.plots import COLOURS, Panel, Picture

from .claims import FAILS, HOLDS, LEAST_RUNS, UNDECIDED, Claim, Measure
from .pictures import WORST, Heat, Maps, save_static
from .text import RAISED, latex_table, typeset


class ReportTable(NamedTuple):
    """A small table; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    latex: Callable[[str], str] | None = (
        None  # from a label to a table that is not these words in columns
    )


class Section(NamedTuple):
    """One experiment in a report."""

    text: str
    claims: tuple[Claim, ...]
    pictures: tuple[Picture | Maps, ...]
    tables: tuple[ReportTable, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""
    title: str = ""
    extent: str = ""  # how much was run: runs and rounds, or repetitions


# Plotly's names for the DASHES and MARKERS that matplotlib draws.
_DASHES = ("solid", "dash", "dashdot", "dot")
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
FAR = 100  # times the runs so far: nobody can tell from these how many more it takes
# Kinds of verdicts in the order of the tally, with their style classes.
KINDS = {
    "hold": "holds",
    "hold in part": "open",
    "fail": "fails",
    "undecided": "open",
    "not judged": "open",
}


def build_page(title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """The whole page as text."""
    claims = [claim for section in sections for claim in section.claims]
    pictures = [picture for section in sections for picture in section.pictures]
    data: dict[str, Any] = {
        "pictures": [
            picture._asdict() | {"panels": list(map(_panel_data, picture.panels))}
            for picture in pictures
        ],
        "colours": COLOURS,
    }
    data |= {"worst": WORST, "dashes": _DASHES, "symbols": _SYMBOLS}
    # "</" would end the script element that holds the data.
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    return _template().render(
        title=title,
        lead=lead,
        facts=facts,
        sections=sections,
        first=next((section for section in sections if section.pictures), None),
        claims=claims,
        tally=counted(claims),
        data=Markup(content),
    )


@cache
def _template() -> Template:
    """The page, with the filters for its texts and numbers."""
    made = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    made.filters |= {
        "html": lambda text: Markup(typeset(text)),
        "text": lambda text: Markup(typeset(str(escape(text)))),
        "measure": formatted,
        "needed": needed_runs,
    }
    made.globals |= {
        "own": lambda name: Markup(_own(name)),
        "plotly": Markup(files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8")),
        "is_map": lambda picture: isinstance(picture, Maps),
        "kinds": KINDS,
        "colour": lambda verdict: {HOLDS: "holds", FAILS: "fails"}.get(verdict, "open"),
    }
    return made.from_string(_own("page.html"))


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def formatted(part: Measure) -> str:
    """A measurement with its interval, such as 86.1 (79.3 to 92.9)."""
    if not (math.isfinite(part.low) and math.isfinite(part.high)):
        return short(part.value)
    return f"{short(part.value)} ({short(part.low)} to {short(part.high)})"


def short(value: float) -> str:
    """A number with three or four significant digits.

    >>> short(0.507), short(138_412.0), short(-3.2e-7)
    ('0.507', '1.38 × 10⁵', '−3.20 × 10⁻⁷')
    """  # noqa: RUF002
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{digits} × 10{str(int(power)).translate(RAISED)}".replace("-", "−")  # noqa: RUF001
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{places}f}".replace("-", "−")  # noqa: RUF001


def counted(claims: Sequence[Claim]) -> dict[str, int]:
    """How many claims have each kind of verdict, in the order in which a reader wants them; kinds without any are left out.

    >>> claim = Claim("a", "", "", "", "", (), "holds only for K = 8")
    >>> counted([claim, claim._replace(verdict=HOLDS)])
    {'hold': 1, 'hold in part': 1}
    """
    kinds = [_kind(claim) for claim in claims]
    return {kind: kinds.count(kind) for kind in KINDS if kind in kinds}


def _kind(claim: Claim) -> str:
    if not claim.judged:
        return "not judged"
    return {HOLDS: "hold", FAILS: "fail", UNDECIDED: "undecided"}.get(claim.verdict, "hold in part")


def needed_runs(claim: Claim) -> str:
    """How many runs would decide an undecided claim, in words; empty if it is decided.

    >>> parts = (Measure("all", 1.1, 0.9, 1.3, runs=100),)
    >>> needed_runs(Claim("a", "", "", "", "", parts, UNDECIDED, 1_100))
    'about 1,100 runs would decide it; it has 100'
    """
    if claim.verdict != UNDECIDED:
        return ""
    runs = min(part.runs for part in claim.parts)
    if runs < LEAST_RUNS:
        return (
            f"{runs} runs are too few for a verdict"
            if runs
            else "its intervals include the threshold"
        )
    if claim.runs_to_decide is None or claim.runs_to_decide > FAR * runs:
        return f"far from decided with {runs:,} runs"
    return f"about {claim.runs_to_decide:,} runs would decide it; it has {runs:,}"


def decisive(claim: Claim) -> str:
    """The measurement that decides, and what would decide an undecided claim, in words; empty if there is none."""
    worst = claim.parts[0] if claim.judged and claim.parts else None
    words = f"{formatted(worst)}, claimed: {claim.threshold}; {worst.of}" if worst else ""
    return "; ".join(filter(None, (words, needed_runs(claim))))


def _panel_data(panel: Panel | Heat) -> dict[str, Any]:
    if isinstance(panel, Heat):
        axes = {"log_x": False, "log_y": False, "floor": 0.0}
        return panel._asdict() | {
            "values": [_digits(row) for row in panel.values],
            **axes,
            "heat": True,
        }
    lowest = min((float(value) for series in panel.series for value in series.y), default=0.0)
    series = []
    for each in panel.series:
        band = None if each.band is None else [_digits(ends) for ends in each.ends]
        series.append(each._asdict() | {"x": _digits(each.x), "y": _digits(each.y), "band": band})
    return panel._asdict() | {"series": series, "floor": min(0.0, lowest)}


def _digits(values: Any) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


CLAIMS_FILE = "claims.json"
PAGE_FILE = "report.html"
TABLE_FILE, CLAIMS_TABLE_FILE = "table.tex", "claims.tex"


def write_report(
    folder: Path, title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section], *,
    latex: bool = False,
) -> Path:  # fmt: skip
    """Write the report, for LaTeX also the tables of each section and one of all claims; return the path of the page."""
    for section in sections:
        for picture in section.pictures:
            save_static(picture, folder / section.name)
    claims = [claim for section in sections for claim in section.claims]
    plain = [claim.to_dict() for claim in claims]
    write_atomically(folder / CLAIMS_FILE, json.dumps(plain, indent=1, allow_nan=False) + "\n")
    write_atomically(folder / PAGE_FILE, build_page(title, lead, facts, sections))
    if latex and claims:
        write_atomically(folder / CLAIMS_TABLE_FILE, claims_table(claims))
    for section in sections:
        if latex and section.tables:
            tables = [table_of(section, each, at) for at, each in enumerate(section.tables, 1)]
            write_atomically(folder / section.name / TABLE_FILE, "\n".join(tables))
    return folder / PAGE_FILE


def claims_table(claims: Sequence[Claim]) -> str:
    """The verdicts on claims, each with the measurement that decides it."""
    rows = [(each.verdict, f"{each.statement} ({each.place})", decisive(each)) for each in claims]
    caption = (
        "Verdicts on the claims. A claim holds if all of its 95 % intervals lie on its side of the threshold, which hold "
        "jointly (Bonferroni). It fails if one lies entirely on the other side; otherwise it is undecided. The measurement "
        f"is the one that is closest to the threshold, with its interval. Made with decoupled {__version__}."
    )
    return latex_table(
        ("Verdict", "Claim", "Measured"), rows, caption, "tab:claims", (0.14, 0.46, 0.3)
    )


def table_of(section: Section, table: ReportTable, number: int) -> str:
    """A table of a section for a paper; its caption begins with the section's title."""
    label = f"tab:{section.name}" + (f"-{number}" if number > 1 else "")
    if table.latex is not None:
        return table.latex(label)
    extent = f" {section.extent}" if section.extent else ""
    caption = f"{section.title}. {table.title}.{extent} Made with decoupled {__version__}."
    return latex_table(table.head, table.rows, caption, label)
