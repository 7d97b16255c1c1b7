"""Can it find the best of 5,000 arms?

Half of the 5,000 items in this catalogue pay less than a sixth of what the second best
may pay. Each point is the mean reward of what was exploited in 1,000 rounds, over 6 runs,
with its 95 % interval. There is little to see before round 4,000. Then it finds good
items; a run may settle for one that is not the best.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

shop = dc.environments.Catalogue(arms=5_000, gap=0.2, top=0.9)
results = dc.simulate(dc.Ladder(), shop, horizon=20_000, runs=6, seed=0, checkpoints=20)
rounds = results.data["round"].values
regret = results.data["regret"].values[0]  # runs x rounds
reward = shop.top - np.diff(regret, axis=1, prepend=0.0) / np.diff(rounds, prepend=0)
half = 2.57 * reward.std(axis=0, ddof=1) / 6**0.5  # Student's t, 95 %

figure, axes = plt.subplots()
axes.errorbar(rounds, reward.mean(axis=0), half, marker="o", label="Ladder()")
axes.axhline(shop.top, color="C2", linestyle="--", label="the best item")
axes.axhline(shop.rewards().mean(), color="C6", linestyle=":", label="a random item")
axes.set(xlabel="round", ylabel="mean reward, 95 % interval", ylim=(0, 1))
axes.set_title("5,000 items, 6 runs")
axes.legend(loc="lower right")
plt.show()
