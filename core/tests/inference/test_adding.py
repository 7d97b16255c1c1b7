"""Observations added together: the same sums, to the last bit, as one after the other."""

import gc
import json
import random
from typing import Any

import numpy as np
import pytest

from decoupled.inference.sequences import AT_ONCE, Sequences, add_all
from decoupled.inference.sums import Observation, Sums
from support.interrupts import at_every_point


def observations(count: int, arms: int, seed: int) -> list[Observation]:
    """Observations of all kinds; the losses of the first arm are higher than those of others."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    found = []
    for _ in range(count):
        law = rng.dirichlet(np.ones(arms))
        explore = int(rng.choice(arms, p=law))
        known = 1.0 / float(law[explore])
        weight = chance.choice((known, known, known, None, 1.0))
        available = chance.choice((None, None, range(arms), tuple({explore, chance.randrange(arms)})))
        exploit = chance.choice((None, explore, *range(arms)))
        seen_law = None if chance.random() < 0.2 else law
        loss = chance.random() if explore == 0 else 0.3 * chance.random()
        found.append(Observation(explore, weight, loss, exploit, available, seen_law))
    return found


@pytest.mark.parametrize("drift", [True, False])
@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("arms", [2, 8, 101])
def test_together_is_one_by_one(arms: int, coupled: bool, drift: bool) -> None:
    seen = observations(300 if drift else 150, arms, arms)
    one, all_ = (Sums.start(arms, coupled, 0.3, drift) for _ in range(2))
    start = 0
    for size in (1, 6, 64, 5, 250):
        add_all(all_, seen[start : start + size], start)
        for each in seen[start : start + size]:
            add_all(one, [each], start)
            start += 1
        assert all_.to_dict() == one.to_dict()
        assert json.dumps(all_.to_dict()), "plain values"
    assert start >= len(seen)
    assert one.settled or arms > 2


def test_sequences_are_summed_when_they_are_asked() -> None:
    """Whatever is asked, and when, nothing is missing: arms come and go between the observations."""
    lazy, eager, live = Sequences(3), Sequences(3), [0, 1, 2]
    chance = random.Random(1)
    for number in range(5 * AT_ONCE):
        arm, exploit, loss = chance.choice(live), chance.choice(live), chance.random()
        for each in (lazy, eager):
            each.update(arm, 3.0, loss, exploit)
        assert eager.sums is not None  # sums it at once
        assert lazy.observed == eager.observed == number + 1
        if number == AT_ONCE // 2:
            for each in (lazy, eager):
                each.add_arms(2)
                each.retire(0)
            live = [1, 2, 3, 4]
    assert lazy.to_dict() == eager.to_dict()
    assert Sequences.from_dict(lazy.to_dict()).to_dict() == lazy.to_dict()


@pytest.mark.parametrize("change", ["to_dict", "add_arms", "retire"])
def test_an_interrupt_leaves_the_old_sums_or_the_new(change: str) -> None:
    seen = observations(20, 3, 5)
    changes = {
        "to_dict": lambda sequences: sequences.to_dict(),
        "add_arms": lambda sequences: sequences.add_arms(2),
        "retire": lambda sequences: sequences.retire(1),
    }
    twin, before = Sequences(3), Sequences(3)
    for each in seen:
        before.add(each)
        twin.update(*each[:6])
    old = twin.to_dict()
    changes[change](twin)
    started: list[Sequences] = []

    def start() -> Any:
        started.append(before.copy())
        return lambda: changes[change](started[-1])

    gc.disable()  # a callback of another library, such as hypothesis', would be interrupted
    try:
        for _ in at_every_point(start):
            assert started[-1].observed == 20
            assert started[-1].to_dict() in (old, twin.to_dict())
    finally:
        gc.enable()
    assert len(started) > 20
    assert started[0].to_dict() == twin.to_dict(), "the first was not interrupted"
    assert before.to_dict() == old, "copies share nothing that changes"
