"""The alarm of a verdict: it is the sum it says, it is rarely false, and it notices a change."""

import json

import numpy as np
import pytest

from decoupled.inference import Sequences
from decoupled.inference.lookout import BET, Lookout, _State
from decoupled.inference.sums import Observation
from decoupled.kernels.betting import RATE


def lookout_for(decided: int, arms: int, every: float) -> Lookout:
    """One that goes by a verdict for this arm."""
    found = Lookout(every)
    rivals = tuple(arm for arm in range(arms) if arm != decided)
    found._now = _State(decided=decided, rivals=rivals, wealth=(0.0,) * len(rivals))
    return found


def gains(decided: int, seen: list[Observation]) -> list[dict[int, float]]:
    """What is bet on in each round, by rival, as the module says it; rivals that a round does not compare are left out."""
    level, found = 0.5, []
    for explore, weight, loss, _, available, law, rho in seen:
        above, gain = rho * (loss - level), dict[int, float]()
        level = min(max(level + RATE * above, 0.0), 1.0)
        arms = range(3) if available is None else available
        for rival in range(3):
            if rival == decided or (law is None and not {rival, decided} <= set(arms)):
                continue
            if law is not None and law[rival] * law[decided] > 0.0:
                w = law[decided] * law[rival] / (law[decided] + law[rival])
                sign = (explore == decided) / law[decided] - (explore == rival) / law[rival]
                gain[rival] = w * sign * above
            elif law is None and weight is not None:
                both = (explore == decided) * weight * loss + (explore == rival) * weight * (1.0 - loss)
                gain[rival] = (both - 1.0) / len(arms)
        found.append(gain)
    return found


def test_it_is_a_sum_of_e_processes_that_start_at_every_round() -> None:
    rng, seen = np.random.default_rng(5), list[Observation]()
    for n in range(60):
        law = rng.dirichlet(np.ones(3))
        explore = int(rng.choice(3, p=law))
        if n % 7 == 3:  # rival 2 has no chance
            law, explore = np.array([0.4, 0.6, 0.0]), n % 2
        known, some = (None if n % 5 == 4 else law), ((0, 1) if n % 7 == 3 and n % 5 == 4 else None)
        weight = 1.0 / float(law[explore])
        seen.append(
            Observation(explore, weight, float(rng.random()), None, some, known, 1.0 if n % 3 else 0.5)
        )
    lookout, sequences, means = lookout_for(1, 3, np.inf), Sequences(3), list[float]()
    bets = gains(1, seen)
    for n, each in enumerate(seen):
        lookout.take(n, each, sequences)
        lookout.take(n, each, sequences)  # of an interrupted call
        for place, rival in enumerate((0, 2)):
            factors = [1.0 + BET * gain[rival] for gain in bets[: n + 1] if rival in gain]
            products = sum(np.prod(factors[start:]) for start in range(len(factors)))
            assert lookout._now.wealth[place] == pytest.approx(products, rel=1e-9)
        means.append(lookout.alarm.evidence)
    rings = lookout_for(1, 3, every=20.0)
    while rings.alarm.raised == 0:
        rings.take(rings._now.taken, seen[rings._now.taken], sequences)
    assert rings._now.taken == 1 + next(n for n, mean in enumerate(means) if mean >= 20.0)
    again = Lookout.from_dict(json.loads(json.dumps(lookout.to_dict())))
    assert again.to_dict() == lookout.to_dict()


def alarms(means: list[float], decided: int, runs: int, looks: int, every: float) -> int:
    """How many runs raise an alarm within so many looks by an even law: many runs of the sum at once, as above."""
    rng, arms = np.random.default_rng(11), len(means)
    level, wealth, raised = np.full(runs, 0.5), np.zeros((runs, arms - 1)), np.zeros(runs, bool)
    rivals = np.array([arm for arm in range(arms) if arm != decided])
    for _ in range(looks):
        explore = rng.integers(arms, size=runs)
        above = (rng.random(runs) < np.array(means)[explore]) - level
        level += RATE * above
        sign = (explore == decided)[:, None] * 1.0 - (explore[:, None] == rivals)
        wealth = (1.0 + wealth) * (1.0 + BET * 0.5 * sign * above[:, None])
        raised |= wealth.mean(axis=1) >= every
    return int(raised.sum())


@pytest.mark.parametrize(
    ("means", "looks", "every"),
    [([0.3, 0.3], 20_000, 100_000), ([0.3] * 4, 300, 1_000), ([0.2, 0.3], 300, 1_000)],
)
def test_false_alarms_are_as_rare_as_stated(means: list[float], looks: int, every: float) -> None:
    """At most looks / every of 300 runs, and 4 standard deviations more: a true claim fails in fewer than 1 of 10^4 seeds."""
    runs, share = 300, looks / every
    assert alarms(means, 0, runs, looks, every) <= runs * share + 4.0 * (runs * share * (1 - share)) ** 0.5


def test_false_alarms_of_the_lookout_itself_are_as_rare_as_stated_and_a_change_raises_one() -> None:
    """At most 200 of 300 runs, and 4 standard deviations more. About 55 are found, and at half the threshold 248."""
    rng, law, raised = np.random.default_rng(12), np.full(4, 0.25), 0
    for _ in range(300):
        lookout, sequences = lookout_for(0, 4, every=150.0), Sequences(4)
        for n, (arm, loss) in enumerate(zip(rng.integers(4, size=100), rng.random(100) < 0.5, strict=True)):
            lookout.take(n, Observation(int(arm), 4.0, float(loss), None, None, law, 1.0), sequences)
        raised += lookout.alarm.raised > 0
    assert 20 < raised <= 200 + 4.0 * (200.0 / 3.0) ** 0.5
    # A median of 900 looks until 100,000 for a difference of 0.1 (3,000 fail in fewer than 1 of 1,000 runs).
    assert alarms([0.3, 0.2], 0, 300, 3_000, 100_000) >= 297
    assert alarms([0.7, 0.3], 0, 300, 400, 100_000) >= 297
