"""When is it decided, if I look all the time?

A watched learner keeps a confidence sequence for the mean loss of each arm: intervals
that hold at every moment at once with probability 95 %. So you may look as often as you
like, and stop when you like. This is one run: the dashed lines are the true means, and
the vertical line is the first look with the verdict that `new` is better. The verdict
comes before the two bands part, because it compares the arms directly.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = {"old": 0.5, "new": 0.3}
luck = np.random.default_rng(2)
learner = dc.Ladder().start(arms=list(means), seed=2)
learner.watch(risk=0.05)
looks, intervals, decided = range(50, 3_001, 50), {arm: [] for arm in means}, None
for look in looks:
    while learner.round <= look:
        decision = learner.decide()
        learner.observe(decision, loss=float(luck.random() < means[decision.explore]))
    for arm, interval in learner.inference.intervals().items():
        intervals[arm].append((interval.low, interval.high))
    if decided is None and learner.inference.verdict().state == "decided":
        decided = look

figure, axes = plt.subplots()
for number, (arm, ends) in enumerate(intervals.items()):
    low, high = np.transpose(ends)
    axes.fill_between(looks, low, high, color=f"C{number}", alpha=0.35, label=arm)
    axes.axhline(means[arm], color=f"C{number}", linestyle="--", linewidth=1)
axes.axvline(decided, color="black", linewidth=1)
axes.set(xlabel="observations", ylabel="mean loss, 95 % sequence", ylim=(0, 1.15))
axes.set_title("One run")
axes.legend(loc="upper center", ncols=2)
plt.show()
