"""The report as one HTML file: no network, interactive figures, readable anywhere."""

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from ..plots import COLOURS, WORST, Heat, Panel, Picture, Series
from .claims import FAILS, HOLDS, Claim, Measure
from .mathematics import typeset
from .section import Section, Table

# Plotly's names for the DASHES and MARKERS that matplotlib draws.
_DASHES = ("solid", "dash", "dashdot", "dot")
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
LONG_TABLE = 12  # rows; longer tables are collapsed
_STATIC = ("png", "svg", "pdf")


def build_page(title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """The whole page as text."""
    claims = [claim for section in sections for claim in section.claims]
    pictures = [picture for section in sections for picture in section.pictures]
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{typeset(lead)}</p>",
        *[f'<p class="alarm">{escape(each)}</p>' for section in sections for each in section.warnings],
        _contents(sections, bool(claims)),
        _claims_table(claims) if claims else "",
        *[_section(section) for section in sections],
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


def _claims_table(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr id="claim-{claim.id}"><td class="verdict {verdict_class(claim.verdict)}">{escape(claim.verdict)}</td>'
        f"<td>{_text(claim.statement)}<br><span class=faint>{_text(claim.place)}</span></td>"
        f"<td>{_measured(claim)}</td></tr>"
        for claim in claims
    )
    head = "<thead><tr><th>Verdict</th><th>Claim</th><th>Measured</th></tr></thead>"
    return (
        '<h2 id="claims">Claims</h2><p>Every verdict is computed from the runs below. A claim holds if all of its '
        "95 % intervals lie on its side of the threshold. It fails if one lies entirely on the other side. Otherwise it is undecided, and "
        "more runs are needed. The intervals of a claim with several parts hold jointly (Bonferroni).</p>"
        f'<div class="wide"><table class="claims">{head}<tbody>{rows}</tbody></table></div>'
    )


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


def _section(section: Section) -> str:
    parts = [f'<section><h2 id="{section.name}">{escape(section.title)}</h2><p>{typeset(section.text)}</p>']
    parts += [f'<p class="extent faint">{escape(section.extent)}</p>'] if section.extent else []
    parts += [f'<p class="alarm">{escape(each)}</p>' for each in section.warnings]
    parts += [_figure(section, picture) for picture in section.pictures]
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


def _table(table: Table) -> str:
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
    if len(table.rows) > LONG_TABLE:
        summary = f"<summary>{escape(table.title)}: {len(table.rows)} rows</summary>"
        return f'<details>{summary}<div class="wide"><table>{body}</details>'
    return f'<div class="wide"><table><caption>{escape(table.title)}</caption>{body}'


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts.items()
    )
    return f'<h2 id="facts">How it was run</h2><div class="wide"><table>{rows}</table></div>'


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

    band = None if series.band is None else digits(series.band)
    return series._asdict() | {"x": digits(series.x), "y": digits(series.y), "band": band}
