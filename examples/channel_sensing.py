"""A radio that sends on one channel and senses another, while the quiet channel moves.

In every slot, the radio sends a packet on one channel (`exploit`). It does not learn in time whether the
packet arrived. In the same slot, a second receiver listens on another channel (`explore`) and reports
whether it was busy: that is the loss. Interference drifts, so old observations mislead. A learner that
forgets keeps up, and one that remembers everything does not.

    python examples/channel_sensing.py

sends packets through a drifting band with several radios and compares the share of lost packets.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import decoupled as dc

CHANNELS = 6
PERIOD = 6_000  # slots until the interference repeats


def busy(channel: int, slot: int) -> float:
    """The probability that a channel is busy: it moves between 0.1 and 0.9, shifted for each channel."""
    return 0.5 - 0.4 * math.cos(2.0 * math.pi * (slot / PERIOD - channel / CHANNELS))


def lost(policy: dc.Policy, slots: int, seed: int) -> float:
    """The share of packets that a radio loses with this policy."""
    band = random.Random(seed)
    learner = policy.start(arms=CHANNELS, seed=seed)
    packets = 0
    for slot in range(slots):
        decision = learner.decide()
        packets += band.random() < busy(int(decision.exploit or 0), slot)  # suffered, not reported
        sensed = band.random() < busy(int(decision.explore), slot)
        learner.observe(decision, loss=float(sensed))
    return packets / slots


@dataclass(frozen=True)
class Share:
    """The mean share of packets lost, and half the width of its 95 % interval."""

    mean: float
    margin: float

    def __str__(self) -> str:
        return f"{self.mean:6.1%} ± {self.margin:.1%}"


def compare(slots: int, runs: int) -> dict[str, Share]:
    """The loss of each radio, compared with random choice, the best single channel, and perfect knowledge."""
    recommended, discounted = dc.Ladder(), dc.Forgetting(dc.FTPL(), discount=0.998)
    restarted = dc.Forgetting(dc.Ladder(), period=1_000)
    # The channel that was quietest over all slots, which is known only in hindsight.
    single = min(sum(busy(each, slot) for slot in range(slots)) for each in range(CHANNELS)) / slots
    perfect = (
        sum(min(busy(each, slot) for each in range(CHANNELS)) for slot in range(slots)) / slots
    )
    return {
        "random channel": Share(0.5, 0.0),
        "best single channel": Share(single, 0.0),
        "Ladder()": _mean(lambda seed: lost(recommended, slots, seed), runs),
        "restarted every 1,000": _mean(lambda seed: lost(restarted, slots, seed), runs),
        "FTPL(), discount 0.998": _mean(lambda seed: lost(discounted, slots, seed), runs),
        "perfect knowledge": Share(perfect, 0.0),
    }


def _mean(share: Callable[[int], float], runs: int) -> Share:
    shares = [share(seed) for seed in range(runs)]
    return Share(statistics.fmean(shares), 1.96 * statistics.stdev(shares) / math.sqrt(runs))


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="Channel sensing in a band that drifts.")
    parser.add_argument("--slots", type=int, default=12_000)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    print(f"share of {options.slots:,} packets lost, {options.runs} runs")
    for radio, share in compare(options.slots, options.runs).items():
        print(f"  {radio:28} {share}")


if __name__ == "__main__":
    main()
