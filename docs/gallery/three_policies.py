"""Which of the paper's policies has the least regret?

The paper compares three policies on losses whose level jumps up and down while one arm
stays better by 0.125. The lines are means of 150 runs, and the bands their 95 %
intervals. FTPL is the lowest of the three and bends first. Follow the leader is not one
of the paper's policies and has no guarantee, yet it has less regret than all three here.
"""

import matplotlib.pyplot as plt

import decoupled as dc

world = dc.environments.Alternating(arms=8, gap=0.125)
policies = [dc.FTPL(), dc.TsallisINF(), dc.Exp3(), dc.FollowTheLeader()]
results = dc.simulate(policies, world, horizon=4_000, runs=150, seed=0)

figure, axes = plt.subplots()
results.plot(ax=axes, labels=["FTPL", "Tsallis-INF", "EXP3", "follow the leader"])
axes.set_title("Alternating losses, 8 arms, 150 runs")
plt.show()
