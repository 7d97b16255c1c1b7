"""What does it cost to be careful?

A system serves `old` until the losses show that another arm is better, at a risk of 5 %.
A learner without this rule chooses from the start. The lines are mean regret over 12
runs, with 95 % intervals. Caution costs the slope at the start, until the evidence is in,
and that takes up to 280 rounds here. In return, an incumbent that is the best is given
up with a probability of at most 5 %.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

means = {"old": 0.5, "new": 0.2, "other": 0.6}
rules = {
    "the incumbent first": dc.Guardrails(incumbent="old", risk=0.05),
    "free to choose": dc.Guardrails(),
}
rounds, runs = 1_000, 12
figure, axes = plt.subplots()
for number, (label, guardrails) in enumerate(rules.items()):
    paid = np.zeros((runs, rounds))
    for run in range(runs):
        luck = np.random.default_rng(run).random(rounds)
        learner = dc.Learner(dc.Ladder(), list(means), seed=run, guardrails=guardrails)
        for t in range(rounds):
            decision = learner.decide()
            paid[run, t] = means[decision.exploit] - means["new"]
            learner.observe(decision, loss=float(luck[t] < means[decision.explore]))
    regret = paid.cumsum(axis=1)
    mean, error = regret.mean(axis=0), regret.std(axis=0, ddof=1) / runs**0.5
    low, high = mean - 2.20 * error, mean + 2.20 * error  # Student's t, 95 %
    axes.plot(mean, label=label)
    axes.fill_between(range(rounds), low, high, color=f"C{number}", alpha=0.2)
axes.set(xlabel="round", ylabel="mean regret, 95 % interval", ylim=(0, None))
axes.set_title("Ladder(), 3 arms, 12 runs")
axes.legend()
plt.show()
