"""What is last month's log worth?

An old system sent 80 % of its messages by email, and logged what it did with the
probabilities. A new learner can replay such a log before its first decision. The lines
are mean regret over 20 runs, with 95 % intervals, for logs of 0, 100 and 1,000 rows. With
1,000 rows regret is far lower. A hundred rows, ten of them about the best arm, make no
difference that 20 runs could show.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

bounced = {"email": 0.55, "push": 0.4, "sms": 0.5}
shares = {"email": 0.8, "push": 0.1, "sms": 0.1}
rounds, runs = 800, 20
figure, axes = plt.subplots()
for number, rows in enumerate([0, 100, 1_000]):
    paid = np.zeros((runs, rounds))
    for run in range(runs):
        luck = np.random.default_rng(run)
        learner = dc.Ladder().start(arms=list(bounced), seed=run)
        sent = luck.choice(list(shares), rows, p=list(shares.values())).tolist()
        losses = [float(luck.random() < bounced[arm]) for arm in sent]
        learner.replay(
            [(arm, shares[arm], loss) for arm, loss in zip(sent, losses, strict=True)]
        )
        for t in range(rounds):
            decision = learner.decide()
            paid[run, t] = bounced[decision.exploit] - bounced["push"]
            loss = float(luck.random() < bounced[decision.explore])
            learner.observe(decision, loss=loss)
    regret = paid.cumsum(axis=1)
    mean, error = regret.mean(axis=0), regret.std(axis=0, ddof=1) / runs**0.5
    low, high = mean - 2.09 * error, mean + 2.09 * error  # Student's t, 95 %
    axes.plot(mean, label=f"{rows:,} rows replayed")
    axes.fill_between(range(rounds), low, high, color=f"C{number}", alpha=0.2)
axes.set(xlabel="round", ylabel="mean regret, 95 % interval", ylim=(0, None))
axes.set_title("Ladder(), 3 arms, 20 runs")
axes.legend()
plt.show()
