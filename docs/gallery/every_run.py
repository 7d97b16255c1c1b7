"""How different are single runs?

The 95 % interval of a mean gets narrower with every run, so it says little about the one
run that you will have. The bands here span nine runs in ten, out of 200. They are wide:
one run of `FTPL()` in twenty has more than twice the mean regret. Still, 19 of 20 runs of
`Ladder()` end below the median run of `FTPL()`.
"""

import matplotlib.pyplot as plt

import decoupled as dc

world = dc.environments.Alternating(arms=8, gap=0.125)
policies = [dc.FTPL(), dc.Ladder()]
results = dc.simulate(policies, world, horizon=3_000, runs=200, seed=0)

figure, axes = plt.subplots()
results.plot(ax=axes, band=(0.05, 0.95), labels=["FTPL()", "Ladder()"])
axes.legend(loc="upper left")
axes.set_title("Alternating losses, 8 arms, 200 runs")
plt.show()
