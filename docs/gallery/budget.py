"""How much exploration is enough?

Exploring may cost money, so a meter keeps a budget: each decision explores with this
probability, and all others use what is known. Each point is the mean regret after 1,000
decisions, over 20 runs, with its 95 % interval. The first observations are worth most.
With 30 % of the exploration, regret is about 2.4 times that with all of it, and about a
seventh of that of guessing.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = [0.3, 0.5, 0.5, 0.6]
shares, decisions, runs = [0.03, 0.1, 0.3, 1.0], 1_000, 20
regret = np.zeros((len(shares), runs))
for place, share in enumerate(shares):
    for run in range(runs):
        luck = np.random.default_rng(run).random(decisions)
        learner = dc.Ladder().start(arms=4, seed=run)
        meter = dc.Meter(dc.Budget(share=share), seed=run)
        for t in range(decisions):
            decision = meter.decide(learner)
            regret[place, run] += means[decision.exploit] - min(means)
            if isinstance(decision, dc.Decision):  # within the budget: it explores
                learner.observe(decision, loss=float(luck[t] < means[decision.explore]))

figure, axes = plt.subplots()
half = 2.09 * regret.std(axis=1, ddof=1) / runs**0.5  # Student's t, 95 %
axes.errorbar(shares, regret.mean(axis=1), half, marker="o", label="Ladder()")
guessing = decisions * (np.mean(means) - min(means))
axes.axhline(guessing, color="C6", linestyle=":", label="guessing")
axes.set_xscale("log")
axes.set_xticks(shares, [f"{share:.0%}" for share in shares])
axes.minorticks_off()
axes.set(xlabel="share of the decisions that may explore", ylim=(0, None))
axes.set_ylabel("mean regret, 95 % interval")
axes.set_title("After 1,000 decisions, 20 runs")
axes.legend(loc="center right")
plt.show()
