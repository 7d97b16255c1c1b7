"""Epsilon-greedy: exploit the smallest mean loss, but a random arm with a small probability; explore evenly."""

from dataclasses import dataclass

import numpy as np

import decoupled as dc


@dataclass(frozen=True)
class EpsilonGreedy(dc.PythonPolicy):
    epsilon: float = 0.05
    learned = ("losses", "seen")

    def decide(self, known):
        means = known.losses / np.maximum(known.seen, 1)
        best = means == means.min()
        even = np.full(known.arms, 1 / known.arms)
        return (1 - self.epsilon) * best / best.sum() + self.epsilon * even, even

    def update(self, known, arm, weight, loss):
        known.losses[arm] += loss
        known.seen[arm] += 1

    def estimates(self, state):
        losses, seen = state.floats
        return losses / np.maximum(seen, 1)
