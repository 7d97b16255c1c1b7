"""The folder of a report: one HTML page, its claims as data, its figures, and tables for LaTeX."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from decoupled import __version__
from decoupled.base import write_atomically
from decoupled.plots import COLOURS, WORST, Heat, Panel, Picture, Series, save_static

from .claims import FAILS, HOLDS, UNDECIDED, Claim, Measure
from .text import latex_table, typeset


class ReportTable(NamedTuple):
    """A small table; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    latex: Callable[[str], str] | None = None  # from a label to a table that is not these words in columns


class Section(NamedTuple):
    """One experiment in a report."""

    text: str
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[ReportTable, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""
    title: str = ""
    extent: str = ""  # how much was run: runs and rounds, or repetitions


# Plotly's names for the DASHES and MARKERS that matplotlib draws.
_DASHES = ("solid", "dash", "dashdot", "dot")
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
LONG_TABLE = 12  # rows; longer tables are collapsed
# A table that is wider than the page scrolls, by touch and by keyboard; the page's script hints at it.
_SCROLLS = '<div class="wide" tabindex="0" role="region" aria-label="{}">'
_STATIC = ("png", "svg", "pdf")
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
    first = next((section for section in sections if section.pictures), None)
    body = [
        f"<header>{_own('mark.svg')}<h1>{escape(title)}</h1></header>",
        _tally(claims) if claims else "",
        f"<p>{typeset(lead)}</p>",
        *[f'<p class="alarm">{escape(each)}</p>' for section in sections for each in section.warnings],
        _figure(first, first.pictures[0]) if first else "",
        _contents(sections, bool(claims)),
        _claims_table(claims) if claims else "",
        *[_section(section, opening=section is first) for section in sections],
        _facts(facts),
    ]
    data: dict[str, Any] = {"pictures": [_picture_data(each) for each in pictures], "colours": COLOURS}
    data |= {"worst": WORST, "dashes": _DASHES, "symbols": _SYMBOLS}
    # "</" would end the script element that holds the data.
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>{_own('page.css')}</style></head><body>",
            *body,
            f'<script type="application/json" id="pictures">{content}</script>',
            f"<script>{_plotly()}</script>",
            f"<script>{_own('page.js')}</script>",
            "</body></html>",
        ]
    )


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")


def _text(text: str) -> str:
    """A text as HTML, with its formulas typeset."""
    return typeset(escape(text))


def _contents(sections: Sequence[Section], claims: bool) -> str:
    links = [(each.name, each.title) for each in sections]
    links = [*([("claims", "Claims")] if claims else []), *links, ("facts", "How it was run")]
    items = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in links)
    return f"<nav><ul>{items}</ul></nav>"


def formatted(part: Measure) -> str:
    """A measurement with its interval, such as 86.1 (79.3 to 92.9)."""
    if not (math.isfinite(part.low) and math.isfinite(part.high)):
        return short(part.value)
    return f"{short(part.value)} ({short(part.low)} to {short(part.high)})"


def short(value: float) -> str:
    """A number with three or four significant digits."""
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def verdict_class(verdict: str) -> str:
    """The style class of a verdict; its text says the same as its colour."""
    return {HOLDS: "holds", FAILS: "fails"}.get(verdict, "open")


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


def _tally(claims: Sequence[Claim]) -> str:
    items = "".join(
        f'<li class="{KINDS[kind]}"><b>{number}</b> {kind}</li>' for kind, number in counted(claims).items()
    )
    return f'<ul class="tally" aria-label="Verdicts on {len(claims)} claims">{items}</ul>'


def needed_runs(claim: Claim) -> str:
    """How many runs would decide an undecided claim, in words; empty if it is decided.

    >>> parts = (Measure("all", 1.1, 0.9, 1.3, runs=100),)
    >>> needed_runs(Claim("a", "", "", "", "", parts, UNDECIDED, 1_100))
    'about 1,100 runs would decide it; it has 100'
    """
    if claim.verdict != UNDECIDED:
        return ""
    if claim.runs_to_decide is None:
        return "what was measured does not tell how many runs would decide it"
    return f"about {claim.runs_to_decide:,} runs would decide it; it has {min(part.runs for part in claim.parts):,}"


def decisive(claim: Claim) -> str:
    """The measurement that decides, and what would decide an undecided claim, in words; empty if there is none."""
    worst = claim.parts[0] if claim.judged and claim.parts else None
    words = f"{formatted(worst)}, claimed: {claim.threshold}; {worst.of}" if worst else ""
    return "; ".join(filter(None, (words, needed_runs(claim))))


def _claims_table(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr id="claim-{claim.id}"><td><span class="verdict {verdict_class(claim.verdict)}">{escape(claim.verdict)}</span>'
        f"{_needed(claim)}</td>"
        f"<td>{_text(claim.statement)}<br><span class=faint>{_text(claim.place)}</span></td>"
        f"<td>{_measured(claim)}</td></tr>"
        for claim in claims
    )
    head = "<thead><tr><th>Verdict</th><th>Claim</th><th>Measured</th></tr></thead>"
    return (
        '<h2 id="claims">Claims</h2><p>Every verdict is computed from the runs below. A claim holds if all of its '
        "95 % intervals lie on its side of the threshold. It fails if one lies entirely on the other side. Otherwise it is undecided, and "
        "needs more runs: about as many as it says, with a chance of 90 % if the value measured so far is the true one. The intervals of a claim with several parts hold jointly (Bonferroni).</p>"
        f'{_SCROLLS.format("Claims")}<table class="claims">{head}<tbody>{rows}</tbody></table></div>'
    )


def _needed(claim: Claim) -> str:
    words = needed_runs(claim)
    return f'<br><span class="needed faint">{words}</span>' if words else ""


def _measured(claim: Claim) -> str:
    if not claim.judged:
        return "&ndash;"
    if not claim.parts:
        return _text(claim.statistic)
    worst = claim.parts[0]
    line = f"{_text(claim.statistic)}: {formatted(worst)}; claimed: {escape(claim.threshold)}"
    if len(claim.parts) == 1:
        return f"{line} <span class=faint>({escape(worst.of)})</span>"
    rows = "".join(
        f'<tr><td>{escape(part.of)}</td><td class="number">{formatted(part)}</td></tr>'
        for part in claim.parts
    )
    return (
        f"{line}. Closest: {escape(worst.of)}"
        f"<details><summary>all {len(claim.parts)}</summary><table>{rows}</table></details>"
    )


def _section(section: Section, opening: bool) -> str:
    parts = [f'<section><h2 id="{section.name}">{escape(section.title)}</h2><p>{typeset(section.text)}</p>']
    parts += [f'<p class="extent faint">{escape(section.extent)}</p>'] if section.extent else []
    parts += [f'<p class="alarm">{escape(each)}</p>' for each in section.warnings]
    shown = section.pictures[1:] if opening else section.pictures
    if opening:
        link = f'<a href="#figure-{section.pictures[0].name}">the figure at the top of this page</a>'
        parts += [f'<p class="faint">Its main figure is {link}.</p>']
    parts += [_figure(section, picture) for picture in shown]
    parts += [_table(table) for table in section.tables]
    return "\n".join([*parts, "</section>"])


def _figure(section: Section, picture: Picture) -> str:
    base = f"{section.name}/{picture.name}"
    links = " · ".join(f'<a href="{base}.{kind}">{kind.upper()}</a>' for kind in _STATIC)
    buttons = "".join(
        f'<button type="button" data-what="{what}" aria-pressed="false">{word}</button>'
        for what, word in (("logX", "log x"), ("logY", "log y"), ("bands", "bands"))
    )
    if isinstance(picture.panels[0], Heat):
        buttons = ""  # a map has no options
    return (
        f'<figure id="figure-{picture.name}"><div class="toolbar">{buttons}</div><div class="plot"></div>'
        f"<figcaption><b>{_text(picture.title)}.</b> {_text(picture.caption)} "
        f'<span class="faint">{links} · <a href="{base}.csv">data</a></span></figcaption></figure>'
    )


def _table(table: ReportTable) -> str:
    head = "".join(
        f"<th{'' if number == 0 else ' class=number'}>{_text(name)}</th>"
        for number, name in enumerate(table.head)
    )
    rows = "".join(
        "<tr>" + "".join(
            f'<td{"" if number == 0 else " class=number"}>{_text(cell)}</td>' for number, cell in enumerate(row)
        ) + "</tr>"
        for row in table.rows
    )  # fmt: skip
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    scrolls = _SCROLLS.format(escape(table.title, quote=True))
    if len(table.rows) > LONG_TABLE:
        summary = f"<summary>{escape(table.title)}: {len(table.rows)} rows</summary>"
        return f"<details>{summary}{scrolls}<table>{body}</details>"
    return f"{scrolls}<table><caption>{escape(table.title)}</caption>{body}"


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts.items()
    )
    return (
        f'<h2 id="facts">How it was run</h2>{_SCROLLS.format("How it was run")}<table>{rows}</table></div>'
    )


def _picture_data(picture: Picture) -> dict[str, Any]:
    return picture._asdict() | {"panels": [_panel_data(panel) for panel in picture.panels]}


def _panel_data(panel: Panel | Heat) -> dict[str, Any]:
    if isinstance(panel, Heat):
        values = [
            [float(f"{value:.6g}") if math.isfinite(value) else None for value in row]
            for row in panel.values
        ]
        return panel._asdict() | {"values": values, "floor": 0.0, "heat": True}
    lowest = min((float(value) for series in panel.series for value in series.y), default=0.0)
    series = [_series_data(each) for each in panel.series]
    return panel._asdict() | {"series": series, "floor": min(0.0, lowest)}


def _series_data(series: Series) -> dict[str, Any]:
    def digits(values: Any) -> list[float | None]:
        return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]

    band = None if series.band is None else [digits(ends) for ends in series.ends]
    return series._asdict() | {"x": digits(series.x), "y": digits(series.y), "band": band}


CLAIMS_FILE = "claims.json"
PAGE_FILE = "report.html"
TABLE_FILE, CLAIMS_TABLE_FILE = "table.tex", "claims.tex"


def write_report(
    folder: Path,
    title: str,
    lead: str,
    facts: Mapping[str, str],
    sections: Sequence[Section],
    *,
    latex: bool = False,
) -> Path:
    """Write the report; return the path of the page."""
    for section in sections:
        for picture in section.pictures:
            save_static(picture, folder / section.name)
    claims = [claim.to_dict() for section in sections for claim in section.claims]
    write_atomically(folder / CLAIMS_FILE, json.dumps(claims, indent=1, allow_nan=False) + "\n")
    write_atomically(folder / PAGE_FILE, build_page(title, lead, facts, sections))
    if latex:
        write_latex(folder, sections)
    return folder / PAGE_FILE


def write_latex(folder: Path, sections: Sequence[Section]) -> None:
    """Write a file with the tables of each section, and one with a table of all claims."""
    claims = [claim for section in sections for claim in section.claims]
    if claims:
        write_atomically(folder / CLAIMS_TABLE_FILE, claims_table(claims))
    for section in sections:
        if section.tables:
            tables = [table_of(section, each, at) for at, each in enumerate(section.tables, 1)]
            write_atomically(folder / section.name / TABLE_FILE, "\n".join(tables))


def claims_table(claims: Sequence[Claim]) -> str:
    """The verdicts on claims, each with the measurement that decides it."""
    rows = [(each.verdict, f"{each.statement} ({each.place})", decisive(each)) for each in claims]
    caption = (
        "Verdicts on the claims. A claim holds if all of its 95 % intervals lie on its side of the threshold, which hold "
        "jointly (Bonferroni). It fails if one lies entirely on the other side; otherwise it is undecided. The measurement "
        f"is the one that is closest to the threshold, with its interval. Made with decoupled {__version__}."
    )
    return latex_table(("Verdict", "Claim", "Measured"), rows, caption, "tab:claims", (0.14, 0.46, 0.3))


def table_of(section: Section, table: ReportTable, number: int) -> str:
    """A table of a section for a paper; its caption begins with the section's title."""
    label = f"tab:{section.name}" + (f"-{number}" if number > 1 else "")
    if table.latex is not None:
        return table.latex(label)
    extent = f" {section.extent}" if section.extent else ""
    caption = f"{section.title}. {table.title}.{extent} Made with decoupled {__version__}."
    return latex_table(table.head, table.rows, caption, label)
