"""The figures of `traffic.md`: what its code blocks compute."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.plots import COLOURS, SMALL

BLUE, RED, *_ = COLOURS
Canvas = Callable[[float], tuple[Any, Any]]


def games() -> Any:
    """The regret of the decoupled game and of the standard one, by round, as the page plots it."""
    world = dc.environments.Bernoulli(rewards=[0.55, 0.6, 0.45, 0.3, 0.2])
    policies = [dc.Ladder(), dc.ThompsonSampling()]
    results = dc.simulate(policies, world, horizon=2_000, runs=200, seed=0)
    return results.plot(
        labels=["decoupled", "standard"], title="The standard game loses twice as much (200 runs)"
    )


def models(canvas: Canvas) -> Any:
    """The models that answered and that were judged, request by request."""
    wrong = {"small": 0.45, "medium": 0.25, "large": 0.05}
    luck, learner = random.Random(7), dc.Ladder().start(arms=list(wrong), seed=7)
    played = []
    for _ in range(500):
        decision = learner.decide()
        learner.observe(decision, loss=float(luck.random() < wrong[str(decision.explore)]))
        played.append([learner.arms.index(arm) for arm in (decision.exploit, decision.explore)])
    requests, (answered, judged) = np.arange(1, len(played) + 1), np.array(played).T
    figure, axes = canvas(2.6)
    axes.plot(
        requests, judged - 0.16, "|", color=RED, markersize=7, label="judged: nobody suffers it"
    )
    axes.plot(requests, answered + 0.16, "|", color=BLUE, markersize=7, label="answers the user")
    axes.set_yticks(range(3), [f"{name}, wrong {share:.0%}" for name, share in wrong.items()])
    axes.set_ylim(2.6, -0.5)
    axes.grid(visible=False)
    axes.set_xlabel("request")
    figure.legend(frameon=False, loc="outside upper left", fontsize=SMALL)
    return figure
