"""How sure is the learner, and where does it look?

A learner can tell you its two probability distributions exactly: what it would exploit
now, and what it would explore. Here they are after 30, 300 and 3,000 rounds of one run.
Exploitation concentrates on the best arm. Exploration follows, but always keeps more of
its probability on the other arms.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = np.array([0.3, 0.4, 0.5, 0.6, 0.7])
luck = np.random.default_rng(0)
learner = dc.FTPL().start(arms=5, seed=0)
figure, panels = plt.subplots(1, 3, sharey=True)
for axes, rounds in zip(panels, [30, 300, 3_000], strict=True):
    while learner.round <= rounds:
        decision = learner.decide()
        learner.observe(decision, loss=float(luck.random() < means[decision.explore]))
    places = np.arange(5)
    exploit = learner.exploitation_probabilities()
    explore = learner.exploration_probabilities()
    axes.bar(places - 0.2, exploit, 0.4, color="C0", label="exploit")
    axes.bar(places + 0.2, explore, 0.4, color="C1", label="explore")
    axes.set(title=f"{rounds:,} rounds", xlabel="arm, best first", xticks=places)
panels[0].set(ylabel="probability", ylim=(0, 1.02))
panels[0].legend()
plt.show()
