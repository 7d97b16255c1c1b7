"""What is it worth to know who asks?

Requests of forty kinds come at random: the first arm is better for 34 of them, the second
for six. The curves are gains over the best single arm, means over 20 runs. A ladder that is
blind to the kind cannot gain anything. One for each kind learns from its own requests alone,
and Thompson sampling for each sees only what it serves. ContextualLadder also uses what the
kinds have in common.
"""

import matplotlib.pyplot as plt
import numpy as np

import decoupled as dc

kinds, rounds = 40, 6_000
luck = np.random.default_rng(3)
kind = luck.integers(kinds, size=rounds)
means = np.where(np.arange(kinds)[:, None] < 34, [0.3, 0.4], [0.6, 0.3])
losses = (luck.random((rounds, 2)) < means[kind]).astype(float)
context = {"kind": [f"kind {each}" for each in kind]}
world = dc.environments.ContextTable(losses, context, order="shuffled")
policies = {
    "ContextualLadder": dc.ContextualLadder(segments=("kind",)),
    "a Ladder() for each kind": dc.baselines.PerSegment(dc.Ladder(), ["kind"]),
    "Thompson sampling for each": dc.baselines.PerSegment(
        dc.ThompsonSampling(), ["kind"]
    ),
    "Ladder(), blind": dc.Ladder(),
}
results = dc.simulate(
    list(policies.values()), world, rounds, runs=20, seed=3, checkpoints=60
)
figure, axes = plt.subplots()
for style, (name, policy) in zip(
    ("C0-", "C2--", "C6-.", "C4:"), policies.items(), strict=True
):
    curve = -results.data["regret_mean"].sel(policy=policy.label)
    axes.plot(curve["round"], curve, style, label=name)
axes.axhline(0, color="black", linewidth=0.8)
axes.set(xlabel="round", ylabel="gain over the best single arm", xlim=(0, rounds))
axes.set_title("Forty kinds of requests, 20 runs")
axes.legend()
plt.show()
