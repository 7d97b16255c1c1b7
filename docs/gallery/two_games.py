"""What is it worth to explore on the side?

In the standard game the arm that you play is the arm that you see, so a look at a
doubtful arm costs you its loss. In the decoupled game a look is free. The lines are mean
regret over 80 runs, with 95 % intervals, and the rounds are on a logarithmic scale. In
the standard game regret keeps growing. In the decoupled game it slows down, and with
`Ladder()` it is flat after 1,000 rounds.
"""

import matplotlib.pyplot as plt

import decoupled as dc

world = dc.environments.Alternating(arms=8, gap=0.125)
policies = {
    "Tsallis-INF, standard game": dc.CoupledTsallisINF(),
    "FTPL, decoupled": dc.FTPL(),
    "Ladder(), decoupled": dc.Ladder(),
}
results = dc.simulate(
    list(policies.values()), world, 10_000, runs=80, seed=0, checkpoints="log"
)

figure, axes = plt.subplots()
results.plot(ax=axes, log=True, labels=list(policies))
axes.set_title("Alternating losses, 8 arms, 80 runs")
plt.show()
