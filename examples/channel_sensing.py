"""A radio that sends on one channel and senses another, while the quiet channel moves.

In every slot the radio sends a packet on one channel (`exploit`); whether it got through is not known in
time to be of use. In the same slot a second receiver listens on one other channel (`explore`) and tells
whether that was busy: the loss. Interference drifts, so what was learned long ago misleads, and a learner
that forgets keeps up where one that remembers everything does not.

    python examples/channel_sensing.py

sends packets through a drifting band with several radios and compares the share that is lost.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import decoupled as dc

CHANNELS = 6
PERIOD = 6_000  # slots until a channel's interference is what it was


def busy(channel: int, slot: int) -> float:
    """The probability that a channel is busy: it swings between 0.1 and 0.9, each channel at its own time."""
    return 0.5 - 0.4 * math.cos(2.0 * math.pi * (slot / PERIOD - channel / CHANNELS))


def lost(policy: dc.Policy, slots: int, seed: int) -> float:
    """The share of packets that a radio with this policy loses."""
    band = random.Random(seed)
    learner = policy.start(arms=CHANNELS, seed=seed)
    packets = 0
    for slot in range(slots):
        decision = learner.decide()
        packets += band.random() < busy(int(decision.exploit or 0), slot)  # suffered, and not reported
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
    """What each radio loses, beside one that stays, one that guesses and one that knows."""
    everything, fading = dc.FTPL.recommended(), dc.Forgetting(dc.FTPL(), discount=0.998)
    afresh = dc.Forgetting(dc.FTPL.recommended(), period=1_000)
    # A radio that stays on the channel which was quietest over all of it, known only afterwards.
    staying = min(sum(busy(each, slot) for slot in range(slots)) for each in range(CHANNELS)) / slots
    knowing = sum(min(busy(each, slot) for each in range(CHANNELS)) for slot in range(slots)) / slots
    return {
        "any channel, at random": Share(0.5, 0.0),
        "the best single channel": Share(staying, 0.0),
        "FTPL.recommended()": _mean(lambda seed: lost(everything, slots, seed), runs),
        "started afresh, every 1,000": _mean(lambda seed: lost(afresh, slots, seed), runs),
        "FTPL(), what was fades": _mean(lambda seed: lost(fading, slots, seed), runs),
        "whoever knows the band": Share(knowing, 0.0),
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
    print(f"packets lost of {options.slots:,}, {options.runs} runs")
    for radio, share in compare(options.slots, options.runs).items():
        print(f"  {radio:28} {share}")


if __name__ == "__main__":
    main()
