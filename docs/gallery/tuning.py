"""How much does the learning rate matter?

The paper's three policies have a parameter c that scales their learning rate, and the
paper sets it to 2. Each point is the mean regret of 60 runs, with its 95 % interval. At c
= 2 FTPL leads clearly. The two others prefer a larger c, and with every policy at its
best c most of the lead is gone.
"""

import matplotlib.pyplot as plt

import decoupled as dc

world = dc.environments.Alternating(arms=8, gap=0.125)
rates = [1.0, 2.0, 4.0, 8.0, 16.0]
figure, axes = plt.subplots()
for kind, label in [(dc.FTPL, "FTPL"), (dc.TsallisINF, "Tsallis-INF"), (dc.Exp3, "EXP3")]:
    results = dc.simulate(
        [kind(c=c) for c in rates], world, horizon=2_000, runs=60, seed=0
    )
    table = results.summary()
    axes.errorbar(
        rates, table["mean"], table["mean"] - table["low"], marker="o", label=label
    )
axes.set_xscale("log", base=2)
axes.set_xticks(rates, [f"{c:g}" for c in rates])
axes.set(xlabel="c", ylabel="mean regret, 95 % interval", ylim=(0, None))
axes.set_title("Alternating losses, 2,000 rounds, 60 runs")
axes.legend()
plt.show()
