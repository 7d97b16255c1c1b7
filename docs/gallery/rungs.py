"""How does it know when to commit?

`Ladder()` exploits in four ways, the rungs of a ladder, and weighs them by
what each would have lost. For 1,500 rounds arm 0 is better, and the rungs that commit
to an arm share the weight. Then the arm exploited last costs 1. The rung on recent means,
which changes its arm soonest, gains first, and the slow rung, which hardly commits, later.
The lines are means of 10 runs, with 95 % intervals. They are wide at first because a run
settles for any of the rungs that do equally well.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc
from decoupled.extend import diagnostics

runs, rounds, change, every = 10, 3_000, 1_500, 25
weights = np.zeros((4, runs, rounds // every))
for run in range(runs):
    luck = np.random.default_rng(run).random(rounds)
    learner, last = dc.Ladder().start(arms=8, seed=run), 0
    for t in range(rounds):
        decision = learner.decide()
        mean = 0.4 if decision.explore == 0 else 0.6
        if t >= change:
            mean = 1.0 if decision.explore == last else 0.5
        learner.observe(decision, loss=float(luck[t] < mean))
        last = decision.exploit
        if t % every == 0:
            inside = diagnostics(learner)
            for rung, name in enumerate(["0.5", "8", "means", "recent"]):
                weights[rung, run, t // every] = inside[f"weight of {name}"]

figure, axes = plt.subplots()
shown = np.arange(0, rounds, every)
for rung, label in enumerate(["slow", "fast", "mean", "recent mean"]):
    each = weights[rung]
    mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / runs**0.5
    low, high = mean - 2.26 * error, mean + 2.26 * error  # Student's t, 95 %
    axes.plot(shown, mean, label=label)
    axes.fill_between(shown, low, high, color=f"C{rung}", alpha=0.2)
axes.axvline(change, color="grey", linewidth=1)
axes.set(xlabel="round", ylabel="mean weight, 95 % interval", ylim=(-0.05, 1.25))
axes.set_title("Arm 0 is better, then committing is punished, 10 runs")
axes.legend(loc="upper center", ncols=4)
plt.show()
