"""Draws the animation of the README, `demo.svg`: a learner's first rounds, from a seeded run.

    python docs/figures/demo.py                   # into docs/figures
    python docs/figures/demo.py --out elsewhere

The picture is complete without its animation, which readers who prefer less motion do not see. It has no script, and
follows the reader's light or dark scheme. A test draws it again and compares it with the committed file.
"""

import argparse
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import decoupled as dc

ARMS = {"a": 0.7, "b": 0.25, "c": 0.6, "d": 0.5}  # mean losses, unknown to the learner
ROUNDS, SEED = 90, 4
WIDTH, HEIGHT = 480, 372  # text of 13 units is above 9 pixels high on a phone
LEFT, STEP, TOP, ROW = 104, 4.05, 64, 30
FLOOR, PEAK = 338, 214  # the lower panel, from its axis to its top

STYLE = """
svg { --ground: #ffffff; --ink: #181b22; --faint: #545c6b; --line: #d8dce4; --use: #2f55c4; --try: #a34f06; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #101216; --ink: #e9ecf2; --faint: #a5adbb; --line: #2e333d; --use: #7d9ffb; --try: #f2a05c; }
}
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; fill: var(--ink); }
.faint { fill: var(--faint); }
.ground { fill: var(--ground); }
.line { stroke: var(--line); }
.use { fill: var(--use); }
.try { fill: none; stroke: var(--try); stroke-width: 1.4; }
text.try { fill: var(--try); stroke: none; }
.curve { fill: none; stroke-width: 2.5; }
.curve.use { stroke: var(--use); }
.curve.try { stroke: var(--try); stroke-width: 2.5; stroke-dasharray: 6 4; }
@media (prefers-reduced-motion: no-preference) {
  .reveal { transform-origin: 104px 0; animation: reveal 12s linear infinite; }
  @keyframes reveal { 0% { transform: scaleX(0); } 75%, 100% { transform: scaleX(1); } }
}
""".strip()


class Round(NamedTuple):
    """The arms of one round."""

    exploit: str
    explore: str


def played() -> list[Round]:
    """The first rounds of a learner."""
    luck = random.Random(SEED)
    learner = dc.Ladder().start(arms=list(ARMS), seed=SEED)
    rounds = []
    for _ in range(ROUNDS):
        decision = learner.decide()
        rounds.append(Round(str(decision.exploit), str(decision.explore)))
        learner.observe(decision, loss=float(luck.random() < ARMS[rounds[-1].explore]))
    return rounds


def excess(arms: Iterable[str]) -> list[float]:
    """The summed mean losses of some arms, above those of the best arm."""
    total, sums = 0.0, []
    for arm in arms:
        total += ARMS[arm] - min(ARMS.values())
        sums.append(total)
    return sums


def curve(kind: str, sums: Sequence[float], highest: float) -> str:
    """One curve of the lower panel."""
    points = " ".join(
        f"{LEFT + STEP * number:.1f},{FLOOR - (FLOOR - PEAK) * value / highest:.1f}"
        for number, value in enumerate(sums, 1)
    )
    return f'<polyline class="curve {kind}" points="{points}"/>'


def picture(rounds: Sequence[Round]) -> str:
    """The whole file."""
    suffered, seen = (
        excess(each.exploit for each in rounds),
        excess(each.explore for each in rounds),
    )
    highest = max(*suffered, *seen)
    heights = {arm: TOP + ROW * number for number, arm in enumerate(ARMS)}
    right = LEFT + STEP * ROUNDS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">',
        '<title id="title">A learner\'s first rounds: it settles on arm b, goes on trying the others, and only what it '
        "exploits is suffered</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        '<circle class="use" cx="20" cy="22" r="6"/><text x="32" y="27">exploited: suffered, not seen</text>',
        '<circle class="try" cx="248" cy="22" r="5.5"/><text x="260" y="27">explored: seen, not suffered</text>',
    ]
    for arm, loss in ARMS.items():
        y = heights[arm]
        lines += [
            f'<text x="12" y="{y + 4}">{arm} <tspan class="faint">loses {loss:g}</tspan></text>',
            f'<line class="line" x1="{LEFT}" x2="{right:.1f}" y1="{y}" y2="{y}"/>',
        ]
    shown = f'<rect class="reveal" x="{LEFT}" y="0" width="{WIDTH - LEFT}" height="{HEIGHT}"/>'
    lines.append(f'<clipPath id="shown">{shown}</clipPath><g clip-path="url(#shown)">')
    for number, each in enumerate(rounds, 1):
        x = f"{LEFT + STEP * number:.1f}"
        lines.append(f'<circle class="try" cx="{x}" cy="{heights[each.explore] - 6}" r="2.6"/>')
        lines.append(f'<circle class="use" cx="{x}" cy="{heights[each.exploit] + 6}" r="2.6"/>')
    lines += [
        curve("try", seen, highest),
        curve("use", suffered, highest),
        "</g>",
        f'<text x="12" y="{PEAK - 14}" class="faint">loss above that of the best arm, summed</text>',
        f'<line class="line" x1="{LEFT}" x2="{right:.1f}" y1="{FLOOR}" y2="{FLOOR}"/>',
        f'<text x="12" y="{PEAK + 10}" class="try">explored</text>',
        f'<text x="12" y="{PEAK + 28}" class="try">{seen[-1]:.1f}</text>',
        f'<text x="12" y="{FLOOR - 24}" style="fill: var(--use)">exploited</text>',
        f'<text x="12" y="{FLOOR - 6}" style="fill: var(--use)">{suffered[-1]:.1f}</text>',
        f'<text x="{right:.1f}" y="{FLOOR + 20}" class="faint" text-anchor="end">round {ROUNDS}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Draw the animation of the README.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    file = parser.parse_args().out / "demo.svg"
    file.write_text(picture(played()), encoding="utf-8")
    print(file)


if __name__ == "__main__":
    main()
