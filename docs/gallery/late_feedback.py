"""What does late feedback cost?

Each decision keeps the probability with which it was drawn, so its feedback may arrive
after hundreds of other decisions and still has the right weight. What is lost is time:
until the first losses arrive, the learner can only guess. The lines are mean regret over
15 runs, with 95 % intervals, for feedback that comes 0, 100 and 300 rounds late.
"""

from collections import deque

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = [0.4, 0.5, 0.5, 0.6, 0.6]
rounds, runs = 1_000, 15
figure, axes = plt.subplots()
for number, delay in enumerate([0, 100, 300]):
    paid = np.zeros((runs, rounds))
    for run in range(runs):
        luck = np.random.default_rng(run).random(rounds)
        learner, waiting = dc.Ladder().start(arms=5, seed=run), deque()
        for t in range(rounds):
            decision = learner.decide()
            paid[run, t] = means[decision.exploit] - min(means)
            waiting.append((decision, float(luck[t] < means[decision.explore])))
            if len(waiting) > delay:
                learner.observe(*waiting.popleft())
    regret = paid.cumsum(axis=1)
    mean, error = regret.mean(axis=0), regret.std(axis=0, ddof=1) / runs**0.5
    low, high = mean - 2.14 * error, mean + 2.14 * error  # Student's t, 95 %
    axes.plot(mean, label=f"{delay} rounds late")
    axes.fill_between(range(rounds), low, high, color=f"C{number}", alpha=0.2)
axes.set(xlabel="round", ylabel="mean regret, 95 % interval", ylim=(0, None))
axes.set_title("Ladder(), 5 arms, 15 runs")
axes.legend()
plt.show()
