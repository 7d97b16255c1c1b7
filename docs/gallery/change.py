"""What if the best arm changes?

Half-way, the best arm and the worst arm change places. A learner that remembers
everything takes long to notice, because all old losses still count. One that forgets,
with a discount of 0.995 for each observation, follows soon, and pays for that before the
change. Regret is measured against the best *single* arm, so it falls below zero once a
learner does better than any single arm. The lines are means of 100 runs, with 95 %
intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = [[0.3, 0.5, 0.5, 0.7], [0.7, 0.5, 0.5, 0.3]]
rounds = 4_000
world = dc.environments.LossTable(means, index=np.arange(rounds) // (rounds // 2))
policies = [dc.FTPL(), dc.Forgetting(dc.FTPL(), discount=0.995)]
results = dc.simulate(policies, world, rounds, runs=100, seed=0)

figure, axes = plt.subplots()
results.plot(ax=axes, labels=["remembers", "forgets"])
axes.axvline(rounds // 2, color="grey", linewidth=1)
axes.set_title("Best and worst arm change places, 100 runs")
plt.show()
