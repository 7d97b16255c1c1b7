"""Files of policies that enter the benchmark, sound and broken."""

HEAD = """
import ctypes, math, os, sys, time
from dataclasses import dataclass

import numpy as np

import decoupled as dc
"""
CLASS = """

@dataclass(frozen=True)
class Soft(dc.PythonPolicy):
    rate: float = 0.1

    def decide(self, known):
        weights = np.exp(-self.rate * (known.estimates - known.estimates.min()))
        exploit, explore = weights / weights.sum(), np.full(known.arms, 1 / known.arms)
        return exploit, explore

    def update(self, known, arm, weight, loss):
        known.estimates[arm] += weight * loss
"""
SOFT = HEAD + CLASS


def with_line(line: str) -> str:
    """The policy with another last line of `decide`, and what was there after it."""
    last = "        return exploit, explore\n"
    return SOFT.replace(last, f"        {line}\n{last}")


BROKEN_LINE = with_line("broken").splitlines().index("        broken") + 1
