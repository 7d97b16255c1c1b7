"""What if some arms are not always there?

Arm a is the best, and away in the second half of every 100 rounds, where a bar lies on
the axis. The learner is told which arms are there, and chooses among them. The areas are
the probabilities of exploiting each arm, in one run. Whenever a returns, it gets its
place back at once: being away costs it nothing. What to do without a takes longer to
learn. At first c gets that place, later b, which is better.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = {"a": 0.3, "b": 0.45, "c": 0.6}
luck = np.random.default_rng(4)
learner = dc.FTPL().start(arms=list(means), seed=4)
shares = []
for t in range(600):
    here = ["b", "c"] if t % 100 >= 50 else ["a", "b", "c"]
    shares.append(learner.exploitation_probabilities(available=here))
    decision = learner.decide(available=here)
    learner.observe(decision, loss=float(luck.random() < means[decision.explore]))

figure, axes = plt.subplots()
axes.stackplot(range(600), np.transpose(shares), labels=means, colors=["C0", "C1", "C2"])
for start in range(50, 600, 100):
    axes.axvspan(start, start + 50, ymax=0.04, color="black")
axes.set(xlabel="round; bar: a is away", ylabel="probability to be exploited")
axes.set(xlim=(0, 600), ylim=(0, 1.15))
axes.set_title("FTPL(), one run")
axes.legend(loc="upper center", ncols=3)
plt.show()
