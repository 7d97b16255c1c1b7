"""Can it learn from "this one is better"?

A judge sees the exploited and the explored arm of each round, and says which one did
better. That is all the learner is told, and it is enough to find the best arm. The lines
are mean regret over 20 runs, with 95 % intervals. A preference says less than a loss, so
learning from preferences has about three times the regret here.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = [0.5, 0.3, 0.6, 0.6]
rounds, runs = 1_000, 20
figure, axes = plt.subplots()
for number, label in enumerate(["from preferences", "from losses"]):
    paid = np.zeros((runs, rounds))
    for run in range(runs):
        luck = np.random.default_rng(run).random(rounds)
        learner = dc.Ladder().start(arms=4, seed=run)
        for t in range(rounds):
            decision = learner.decide()
            tried, used = means[decision.explore], means[decision.exploit]
            paid[run, t] = used - min(means)
            if label == "from losses":
                learner.observe(decision, loss=float(luck[t] < tried))
            else:
                wins = luck[t] < 0.5 + (used - tried) / 2
                learner.observe(decision, preference="explore" if wins else "exploit")
    regret = paid.cumsum(axis=1)
    mean, error = regret.mean(axis=0), regret.std(axis=0, ddof=1) / runs**0.5
    low, high = mean - 2.09 * error, mean + 2.09 * error  # Student's t, 95 %
    axes.plot(mean, label=label)
    axes.fill_between(range(rounds), low, high, color=f"C{number}", alpha=0.2)
axes.set(xlabel="round", ylabel="mean regret, 95 % interval", ylim=(0, None))
axes.set_title("Ladder(), 4 arms, 20 runs")
axes.legend()
plt.show()
