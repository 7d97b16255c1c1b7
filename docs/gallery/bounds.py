"""How far is the theory from what happens?

Two bounds on the regret of FTPL against any adversary, the paper's theorem 3.1 and this
package's theorem A, and its mean regret over 100 runs on one instance, with its 95 %
interval. The bounds have the right order for the worst case, and constants that are far
too large. Losses are at most 1, so regret is at most the number of rounds: a bound says
something only where it is below the dotted line. Both scales are logarithmic.
"""

import matplotlib.pyplot as plt

import decoupled as dc
import decoupled_lab as lab

world = dc.environments.Alternating(arms=8, gap=0.125)
results = dc.simulate(
    dc.FTPL(), world, horizon=10_000, runs=100, seed=0, checkpoints="log"
)
(curve,) = results.series()
rounds, (low, high) = curve.x, curve.ends
bounds = lab.theory.bounds

figure, axes = plt.subplots()
axes.plot(rounds, [bounds.theorem1(int(t), arms=8) for t in rounds], label="theorem 3.1")
axes.plot(rounds, [bounds.theorem_a(int(t), arms=8) for t in rounds], label="theorem A")
axes.plot(rounds, rounds, label="the number of rounds", color="C6", linestyle=":")
axes.plot(rounds, curve.y, label="measured", color="C2", linestyle="-")
axes.fill_between(rounds, low, high, color="C2", alpha=0.3)
axes.set(xscale="log", yscale="log", ylim=(1, 1e6))
axes.set(xlabel="round", ylabel="mean regret, 95 % interval")
for axis in (axes.xaxis, axes.yaxis):
    axis.set_major_formatter("{x:,.0f}")
axes.set_title("FTPL, alternating losses, 100 runs")
axes.legend(loc="upper left", ncols=2)
plt.show()
