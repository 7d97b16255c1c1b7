"""Draws the figures of the documentation with the package; the same bytes every time.

    python docs/figures/make.py                   # into docs/figures
    python docs/figures/make.py --out elsewhere
    python docs/figures/make.py --measure         # simulates what the README's figure shows, first

The figures of the theory are drawn by `decoupled_lab.theory.figures.draw_all`, and the screenshots of the console by
`console.py`. Everything is seeded. A test draws the figures again and compares what they show with what the committed files say.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import decoupled as dc
import decoupled_lab as lab
from decoupled.plots import COLOURS, DASHES, DOTS_PER_INCH, SMALL, WIDTH

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parent))
import leaderboard_map
import measured
import measurements
import traffic
from shown import KEY, shown

BLUE, RED, GREEN, PINK, ORANGE, SKY, GREY = COLOURS
ALPHA = 3.0


def canvas(height: float, panels: int = 1) -> tuple[Any, Any]:
    """A figure with its axes stacked vertically."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes: Any = figure.subplots(panels, 1, squeeze=False)[:, 0]
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes[0] if panels == 1 else axes


def two_arms() -> Any:
    """The arms that a learner exploits and explores, round by round."""
    means = [0.35, 0.55, 0.6, 0.65]
    noise = np.random.default_rng(3).random(400)
    learner = dc.Ladder().start(arms=4, seed=3)
    played = []
    for luck in noise:
        decision = learner.decide()
        learner.observe(decision, loss=float(luck < means[int(decision.explore)]))
        played.append((decision.exploit, decision.explore))
    rounds = np.arange(1, len(played) + 1)
    exploit, explore = np.array(played).T
    figure, axes = canvas(3.1)
    axes.plot(
        rounds, explore - 0.16, "|", color=RED, markersize=7, label="explored: seen, not suffered"
    )
    axes.plot(
        rounds, exploit + 0.16, "|", color=BLUE, markersize=7, label="exploited: suffered, not seen"
    )
    axes.set_yticks(range(4), [f"arm {arm}, loss {mean}" for arm, mean in enumerate(means)])
    axes.set_ylim(3.6, -0.5)
    axes.grid(visible=False)
    axes.set_xlabel("round")
    figure.legend(frameon=False, loc="outside upper left", fontsize=SMALL)
    return figure


def perturbations() -> Any:
    """The Pareto density, and the probability of exploiting a worse arm by its gap."""
    figure, (above, below) = canvas(6.4, panels=2)
    r = np.linspace(1.0, 6.0, 300)
    for style, alpha in enumerate((2.0, 3.0, 5.0)):
        density = alpha * r ** -(alpha + 1.0)
        above.plot(r, density, DASHES[style], color=COLOURS[style], label=f"α = {alpha:g}")  # noqa: RUF001
    above.set(xlabel="perturbation r", ylabel="density", ylim=(0.0, 5.0), xlim=(0.8, 6.0))
    above.legend(frameon=False, title="Pareto, from 1 on")
    gaps = np.logspace(-1, 3, 60)
    ours = np.array([lab.theory.weights([0.0, gap], eta=1.0, alpha=ALPHA)[1] for gap in gaps])
    below.loglog(gaps, ours, color=BLUE, label="FTPL, exact")
    below.loglog(gaps, (1.0 + gaps) ** -ALPHA, DASHES[1], color=RED, label="(1 + ηu)⁻³, the bound")
    exponential = 1.0 / (1.0 + np.exp(np.minimum(gaps, 99.0)))
    below.loglog(gaps, exponential, DASHES[3], color=GREY, label="exponential weights")
    below.set(xlabel="ηu, the gap in units of the rate", ylabel="chance to be exploited")
    below.set(ylim=(1e-9, 2.0), xlim=(0.1, 1e3))
    below.legend(frameon=False, loc="upper right", fontsize=SMALL)
    return figure


def winner_law() -> Any:
    """Eight arms with equal spacing: the probability of each, for several spacings."""
    figure, axes = canvas(3.5)
    arms = np.arange(1, 9)
    for style, stretch in enumerate((0.0, 0.1, 0.5, 3.0)):
        weights = lab.theory.weights(stretch * (arms - 1.0), eta=1.0, alpha=ALPHA)
        dash = DASHES[style % len(DASHES)]
        axes.semilogy(arms, weights, dash, marker="o", markersize=4, color=COLOURS[style],
                      label=f"ηu between neighbours: {stretch:g}")  # fmt: skip
    axes.set(xlabel="arm, from the leader to the last", ylabel="chance to be exploited, w")
    axes.set_ylim(1e-5, 1.5)
    axes.legend(frameon=False, loc="lower left", fontsize=SMALL)
    return figure


def surrogate() -> Any:
    """The ideal exploration probabilities, from the exact w, and those from q, which are cheap."""
    figure, axes = canvas(4.0)
    arms = np.arange(1, 17)
    for style, stretch in enumerate((0.05, 0.3, 2.0)):
        gaps = stretch * (arms - 1.0)
        wanted = lab.theory.weights(gaps, eta=1.0, alpha=ALPHA) ** (0.5 + 0.5 / ALPHA)
        axes.semilogy(
            arms, wanted / wanted.sum(), color=COLOURS[style], label=f"neighbours {stretch:g} apart"
        )
        q = surrogates(gaps)
        axes.semilogy(arms, q / q.sum(), "o", color=COLOURS[style], markersize=4)
    axes.plot([], [], color="black", label="from the exact w, by integrals")
    axes.plot([], [], "o", color="black", markersize=4, label="from q, by ranks and gaps")
    axes.set(xlabel="arm, from the leader to the last", ylabel="chance to be explored, p")
    axes.set_ylim(5e-4, 1.0)
    figure.legend(frameon=False, fontsize=SMALL, loc="outside upper left", ncols=2)
    return figure


def surrogates(gaps: NDArray[np.float64], ranked: bool = True) -> NDArray[np.float64]:
    """The surrogates q of equation (7) at eta = 1, for arms in rank order, with or without the rank term."""
    limit = np.arange(1.0, len(gaps) + 1.0) ** (-1.0 / ALPHA) if ranked else np.inf
    return np.asarray(np.minimum(1.0 / (1.0 + gaps), limit) ** ((ALPHA + 1.0) / 2.0))


def rank_term() -> Any:
    """Two bounds on a probability, by gap and by rank, and the effect of the second on tied arms."""
    figure, (above, below) = canvas(6.4, panels=2)
    arms = np.arange(1, 65)
    gaps = 0.3 * np.maximum(arms - 16.0, 0.0)  # sixteen arms are level, the others fall behind
    above.loglog(
        arms,
        lab.theory.weights(gaps, eta=1.0, alpha=ALPHA),
        "o",
        color=BLUE,
        markersize=3,
        label="w, exact",
    )
    above.loglog(arms, (1.0 + gaps) ** -ALPHA, DASHES[1], color=RED, label="by gap: (1 + ηu)⁻³")
    above.loglog(arms, 1.0 / arms, DASHES[2], color=GREEN, label="by rank: 1 / rank")
    above.set(xlabel="rank", ylabel="chance to be exploited", ylim=(1e-5, 2.0))
    above.legend(frameon=False, fontsize=SMALL, loc="lower left")
    counts = np.unique(np.logspace(0.3, 4, 40).astype(int))
    labels = ("with ranks: at most 3 K$^{1/3}$", "without ranks: K")
    for style, label in reversed(tuple(enumerate(labels))):
        ranked = style == 0
        sums = [surrogates(np.zeros(count), ranked).sum() for count in counts]
        below.loglog(counts, sums, DASHES[style], color=COLOURS[style], label=label)
    below.set(xlabel="arms, all level", ylabel="sum of q")
    below.legend(frameon=False, fontsize=SMALL)
    return figure


def constant_regret() -> Any:
    """Probabilities that fall faster than 1 / t have a finite sum; in the standard game they cannot fall so fast."""
    figure, (above, below) = canvas(6.4, panels=2)
    arms, gap, rounds = 8, 0.125, np.unique(np.logspace(0, 5, 60).astype(int))
    eta = 2.0 * arms ** (1.0 / ALPHA - 0.5) / np.sqrt(rounds)
    w, p = np.array([_bad_arms(rate, gap * t, arms) for rate, t in zip(eta, rounds, strict=True)]).T
    above.loglog(rounds, p, DASHES[1], color=RED, label="explored")
    above.loglog(rounds, w, color=BLUE, label="exploited")
    tail = rounds > 2_000
    above.loglog(rounds[tail], 3.0 * p[tail][0] * rounds[tail][0] / rounds[tail], ":", color=GREY)
    above.loglog(
        rounds[tail], 0.3 * w[tail][0] * (rounds[tail][0] / rounds[tail]) ** 1.5, ":", color=GREY
    )
    above.text(1.1e4, 1.5 * p[tail][0], "1 / t", color=GREY)
    above.text(1.2e3, 0.02 * w[tail][0], "1 / t$^{1.5}$", color=GREY)
    above.set(xlabel="round t", ylabel="chance of some worse arm")
    above.legend(frameon=False, loc="lower left")
    policies = {"FTPL, decoupled": dc.FTPL(), "Tsallis-INF, standard game": dc.CoupledTsallisINF()}
    world = dc.environments.Alternating(arms=arms, gap=gap)
    results = dc.simulate(list(policies.values()), world, 100_000, 60, seed=0, checkpoints="log")
    for style, (label, policy) in enumerate(policies.items()):
        curve = results.data["regret_mean"].sel(policy=policy.label)
        error = results.data["regret_std"].sel(policy=policy.label) / np.sqrt(60)
        below.semilogx(curve["round"], curve, DASHES[style], color=COLOURS[style], label=label)
        below.fill_between(curve["round"], curve - 1.96 * error, curve + 1.96 * error,
                           facecolor=(COLOURS[style], 0.2), edgecolor=COLOURS[style], linewidth=0.6)  # fmt: skip
    below.set(xlabel="round t", ylabel="regret", ylim=(0, None), xlim=(10, 1e5))
    below.legend(frameon=False, fontsize=SMALL, loc="upper left")
    return figure


def _bad_arms(eta: float, lead: float, arms: int) -> tuple[float, float]:
    """The probabilities of exploiting and of exploring a worse arm, if every estimate equals its mean."""
    gaps = np.full(arms, lead)
    gaps[0] = 0.0
    q = surrogates(eta * gaps)
    return float(lab.theory.weights(gaps, eta, ALPHA)[1:].sum()), float(q[1:].sum() / q.sum())


def rung_weights() -> Any:
    """How often the recommended ladder plays each rung, where committing pays and where it is punished."""
    from decoupled_lab.paper.ladder import RUNGS, WORLDS, marks, weights_by_round

    figure, axes = canvas(5.4, panels=2)
    for place, (title, losses_after) in enumerate(WORLDS.items()):
        weights = np.mean([weights_by_round(losses_after, seed) for seed in range(12)], axis=0)
        for style, name in enumerate(RUNGS):
            dash, colour = DASHES[style], COLOURS[style]
            axes[place].semilogx(marks(), weights[:, style], dash, color=colour, label=name)
        axes[place].set_title(title, fontsize=10)
        axes[place].set(ylabel="weight of the rung", ylim=(-0.02, 1.02), xlim=(1, marks()[-1]))
    axes[1].set_xlabel("round")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        frameon=False,
        loc="outside upper center",
        ncols=3,
        fontsize=SMALL,
    )
    return figure


def tuned_map(number: int) -> Any:
    """The map of c and alpha, from the committed measurements of a GPU."""
    from decoupled_lab.paper.tuned_map import maps, read
    from decoupled_lab.report.pictures import draw

    return draw(maps(read(Path(__file__).parents[1] / "data/tuned-map.csv"))[number])


def slices() -> Any:
    """Regret by the share of the traffic that explores."""
    shares, arms, users, runs = (0.01, 0.03, 0.1, 0.3, 1.0), 8, 10_000, 8
    loss, gap = [0.525] * arms, [0.125] * arms
    loss[5], gap[5] = 0.4, 0.0
    regret = np.zeros((len(shares), runs))
    for at, share in enumerate(shares):
        for run in range(runs):
            luck = np.random.default_rng(run).random((users, 2)).tolist()
            learner, paid = dc.Ladder().start(arms=arms, seed=run), 0.0
            for choice, chance in luck:
                paid += gap[learner.exploit().exploit]  # type: ignore[index]
                if choice < share:
                    probe = learner.explore()
                    learner.observe(probe, loss=float(chance < loss[probe.explore]))  # type: ignore[index]
            regret[at, run] = paid
    figure, axes = canvas(3.2)
    half = 1.96 * regret.std(axis=1, ddof=1) / runs**0.5
    axes.errorbar(
        shares, regret.mean(axis=1), half, fmt="o-", color=ORANGE, capsize=3, label="Ladder()"
    )
    axes.axhline(users * sum(gap) / arms, color=GREY, linestyle="--", label="guessing")
    axes.set_xscale("log")
    axes.set_xticks(shares, [f"{share:.0%}" for share in shares])
    axes.minorticks_off()
    axes.set(
        xlabel="share of the users in the slice", ylabel="regret after 10,000 users", ylim=(0, None)
    )
    axes.legend(frameon=False)
    return figure


def regret_shares() -> Any:
    """The regret of three policies over that of the paper's, from the measurements of `beyond.md`."""
    titles = {
        "alternating": "alternating, K = 8, gap 0.125",
        "easy": "stochastic, easy",
        "hard": "stochastic, hard",
        "punished-8": "punish the arm exploited last, K = 8",
        **{f"punished-{arms}": f"the same adversary, K = {arms}" for arms in (2, 32, 128)},
        "moving": "an adversary that moves the level of all losses",
        "movies-32": "MovieLens, 32 movies",
        "movies-256": "MovieLens, 256 movies",
    }
    names = list(titles.values())
    known, policies = measurements.records(), ("ftpl", "centred", "recommended", "leader")
    means = np.array(
        [[known[f"regret.{each}.{policy}"].value for policy in policies] for each in titles]
    )
    share = np.maximum(means[:, 1:] / means[:, :1], 0.02)
    places = np.arange(len(names))
    figure, axes = canvas(4.6)
    labels = ("centred FTPL", "Ladder()", "follow the leader")
    for at, (label, marker, colour) in enumerate(
        zip(labels, "sov", (SKY, ORANGE, PINK), strict=True)
    ):
        axes.semilogx(share[:, at], places, marker, color=colour, label=label, markersize=7)
    for place in places[means[:, 2] < 0.0]:
        axes.annotate(
            "below 0",
            (0.02, place),
            (6, -3),
            textcoords="offset points",
            fontsize=SMALL,
            color=ORANGE,
        )
    axes.axvline(1.0, color="black", linewidth=1.0)
    together = [
        re.sub(r" = |gap ", lambda found: found[0].replace(" ", "\u00a0"), name) for name in names
    ]
    axes.set_yticks(places, [textwrap.fill(name, 25) for name in together], fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_xticks([0.02, 0.1, 0.3, 1.0, 3.0, 8.0], ["≤ 0", "0.1", "0.3", "1", "3", "8"])
    axes.minorticks_off()
    axes.set_xlabel("regret over that of FTPL()")
    figure.legend(frameon=False, loc="outside upper center", ncols=3, fontsize=SMALL)
    return figure


def context_gains() -> Any:
    """What policies gain over the best single arm by the price, with a context that tells and one that does not."""
    names = {
        "contextual": 'ContextualLadder(segments=("subject",))',
        "by-hand": "a Ladder() for each subject",
        "thompson": "Thompson sampling for each, in the standard game",
        "pooled": "Ladder(), blind",
    }
    titles = {"subject": "57 subjects", "noise": "the same labels, shuffled: they tell nothing"}
    prices, known = np.array([5, 10, 15, 20]), measurements.records()
    figure, panels = canvas(5.6, panels=2)
    for axes, (context, title) in zip(panels, titles.items(), strict=True):
        for at, (name, label) in enumerate(names.items()):
            records = [known[f"context.{context}.{price}.{name}"] for price in prices]
            low, mean, high = (
                np.array([getattr(each, end) for each in records])
                for end in ("low", "value", "high")
            )
            axes.errorbar(
                prices / 100 + 0.0012 * (at - 1.5),
                mean,
                [mean - low, high - mean],
                fmt="os^v"[at],
                linestyle=DASHES[at],
                color=(BLUE, GREEN, GREY, ORANGE)[at],
                capsize=3,
                markersize=5,
                label=label,
            )
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_title(title, fontsize=10)
        axes.set_xticks(prices / 100)
        axes.set_ylabel("gain over the best arm")
    most = [known[f"context.subject.{price}.available"].value for price in prices]
    panels[0].plot(
        prices / 100,
        most,
        "_",
        color="black",
        markersize=14,
        label="the best arm of each subject, in hindsight",
    )
    panels[1].set_xlabel("price of the expensive model, in wrong answers")
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        frameon=False,
        loc="outside upper left",
        fontsize=SMALL,
    )
    return figure


FIGURES: dict[str, Callable[[], Any]] = {
    "understand-arms": two_arms,
    "understand-perturbations": perturbations,
    "understand-winner": winner_law,
    "understand-surrogate": surrogate,
    "understand-rank": rank_term,
    "understand-constant": constant_regret,
    "beyond-regret": regret_shares,
    "beyond-rungs": rung_weights,
    "how-to-slice": slices,
    "context-gains": context_gains,
    "benchmark": leaderboard_map.example,
    "leaderboard": leaderboard_map.board,
    "traffic-games": traffic.games,
    "traffic-models": partial(traffic.models, canvas),
    "gpu-map-ftpl": lambda: tuned_map(0),
    "gpu-map-ftrl": lambda: tuned_map(1),
    **{name: partial(measured.figure, name) for name in measured.FIGURES},
}
# Those that the site's own way of turning a figure dark would spoil: a map's colours, and the README has no such way.
DARK = ("gpu-map-ftpl", "gpu-map-ftrl", "readme-regret")
_DARK_STYLE = {
    "figure.facecolor": "#101216",
    "axes.facecolor": "#101216",
    **dict.fromkeys(
        (
            "text.color",
            "axes.labelcolor",
            "axes.edgecolor",
            "xtick.color",
            "ytick.color",
            "axes.titlecolor",
        ),
        "#e9ecf2",
    ),
}
_LIGHTER = {"#0072B2": "#56B4E9", "#56B4E9": "#9AD4F5", "#009E73": "#35C99F", "#D55E00": "#F08A4B"}


def draw(name: str, folder: Path, dark: bool = False) -> Path:
    """Draw one figure and return its file; a dark one has a name that says so."""
    from matplotlib import rc_context

    file = folder / f"{name}{'-dark' if dark else ''}.png"
    with rc_context(_DARK_STYLE if dark else {}):
        figure = FIGURES[name]()
        if dark:
            _lighten(figure)
        figure.savefig(file, dpi=DOTS_PER_INCH, metadata={"Software": None, KEY: shown(figure)})
    return file


def _lighten(figure: Any) -> None:
    """Give the darker colours of the palette more light."""
    from matplotlib.colors import to_hex

    def lighter(colour: Any) -> str:
        return _LIGHTER.get(to_hex(colour).upper(), to_hex(colour))

    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    for line in [each for holder in (*figure.axes, *legends) for each in holder.get_lines()]:
        line.set_color(lighter(line.get_color()))
    for band in [
        each for axes in figure.axes for each in axes.collections if len(each.get_facecolor()) == 1
    ]:
        band.set_facecolor((lighter(band.get_facecolor()[0]), band.get_facecolor()[0][3]))


def main() -> None:
    """Draw all figures."""
    parser = argparse.ArgumentParser(description="Draw the figures of the documentation.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--only", nargs="+", choices=sorted(FIGURES), help="draw these figures")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="first simulate what the README's figure and that of verdicts show",
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.measure:
        print(measured.measure_regret())
        print(measured.measure_arms_out())
    for name in options.only or FIGURES:
        for dark in (False, True)[: 1 + (name in DARK)]:
            print(draw(name, options.out, dark))


if __name__ == "__main__":
    main()
