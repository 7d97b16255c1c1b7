"""What if somebody punishes what I do?

An adversary watches what is exploited and makes that arm cost 1 in the next round. Follow
the leader commits to an arm and is caught again and again: its regret grows in proportion
to the rounds. The other policies stay unpredictable. The lines are means of 100 runs,
with 95 % intervals that are hardly wider than the lines.
"""

import matplotlib.pyplot as plt

import decoupled as dc

adversary = dc.environments.PunishLast(arms=8)
policies = [dc.FollowTheLeader(), dc.FTPL(), dc.Exp3(), dc.Ladder()]
results = dc.simulate(policies, adversary, horizon=3_000, runs=100, seed=0)

figure, axes = plt.subplots()
results.plot(ax=axes, labels=["follow the leader", "FTPL()", "EXP3", "Ladder()"])
axes.set_title("The arm exploited last costs 1, 100 runs")
plt.show()
