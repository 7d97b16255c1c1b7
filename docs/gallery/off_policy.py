"""What would another policy have cost?

A log with propensities can judge policies that never ran. The bars are 95 % confidence
sequences of mean losses, from 3,000 decisions of one learner: of every arm, of what was
served, and of a candidate that splits the traffic between two arms. Dots are estimates,
and the marks across the bars are the true means, which nobody knows in practice. Arms
that were seldom explored have wide bars.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = {"small": 0.7, "medium": 0.5, "large": 0.3}
luck = np.random.default_rng(5)
learner, log = dc.Ladder().start(arms=list(means), seed=5), []
for _ in range(3_000):
    decision = learner.decide()
    loss = float(luck.random() < means[decision.explore])
    learner.observe(decision, loss=loss)
    arms = {"exploit": decision.exploit, "explore": decision.explore}
    log.append(arms | {"propensity": decision.propensity, "loss": loss})

result = dc.evaluate(log, policy={"medium": 0.5, "large": 0.5})
served = np.mean([means[row["exploit"]] for row in log])
truth = [*(means[arm.name] for arm in result.arms), served, 0.4]
figure, axes = plt.subplots()
for place, (value, true) in enumerate(zip(result.values, truth, strict=True)):
    axes.hlines(place, value.low, value.high, color="C0", linewidth=3)
    axes.plot(value.doubly_robust, place, "o", color="C0", markersize=7)
    axes.plot(true, place, "|", color="black", markersize=16, markeredgewidth=2)
names = [value.name.replace(", ", "\n") for value in result.values]
axes.set_yticks(range(len(names)), names)
axes.set(xlim=(0, 1), ylim=(4.6, -0.6))
axes.set_xlabel("mean loss: estimate, 95 % sequence, truth (|)")
axes.set_title("From a log of 3,000 decisions")
plt.show()
