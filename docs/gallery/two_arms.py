"""Which arms are used, and which are tried?

One learner plays 400 rounds with four arms. In every round one mark is the arm that it
exploits, whose loss is suffered and not seen, and one mark is the arm that it explores,
whose loss is seen and not suffered. Exploitation settles on the best arm within a hundred
rounds, with few exceptions. Exploration goes on across all arms.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = {"a": 0.35, "b": 0.55, "c": 0.6, "d": 0.65}
luck = np.random.default_rng(1)
learner = dc.FTPL().start(arms=list(means), seed=3)
decisions = []
for _ in range(400):
    decision = learner.decide()
    learner.observe(decision, loss=float(luck.random() < means[decision.explore]))
    decisions.append(decision)

figure, axes = plt.subplots()
places = {arm: place for place, arm in enumerate(means)}
used = [places[decision.exploit] - 0.15 for decision in decisions]
tried = [places[decision.explore] + 0.15 for decision in decisions]
axes.plot(range(1, 401), used, "|", color="C0", markersize=7, label="exploited")
axes.plot(range(1, 401), tried, "|", color="C1", markersize=7, label="explored")
axes.set_yticks(range(4), [f"{arm}: {mean}" for arm, mean in means.items()])
axes.set(xlabel="round", ylabel="arm: mean loss", ylim=(3.6, -1.1))
axes.grid(visible=False)
axes.set_title("One run")
axes.legend(loc="upper center", ncols=2)
plt.show()
