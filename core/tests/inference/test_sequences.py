"""The sequences as a book-keeper: their sums, what counts where, how they are saved, and what they
refuse.
"""

import gc
import json
import random
from typing import Any

import numpy as np
import pytest

from decoupled.base.packed import pack_floats, pack_ints, unpack_floats, unpack_ints
from decoupled.errors import ArmError, LossError, ParameterError, StateError
from decoupled.inference import Interval, Sequences, lower_difference, lower_mean, regret
from decoupled.inference.adding import add_all
from decoupled.inference.boundary import BETS, GUESSES
from decoupled.inference.sequences import AT_ONCE
from decoupled.inference.sums import Observation, Sums, share_of_batch
from decoupled.kernels.betting import OTHER_ROUNDS, ROUNDS
from support.interrupts import at_every_point

RISK = 0.05


def observations(count: int, arms: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rounds that explore by a known law, which changes from round to round."""
    rng = np.random.default_rng(seed)
    rounds = []
    for _ in range(count):
        law = rng.dirichlet(np.ones(arms)) * 0.9 + 0.1 / arms
        explore, exploit = int(rng.choice(arms, p=law)), int(rng.integers(arms))
        loss = float(rng.random() < (explore + 1) / (arms + 1))
        rounds.append(
            {"explore": explore, "weight": 1.0 / law[explore], "loss": loss, "exploit": exploit}
        )
    return rounds


def columns(rounds: list[dict[str, Any]]) -> Any:
    """The explored arms, weights, losses and exploited arms, as arrays."""
    return (
        np.array([each[name] for each in rounds])
        for name in ("explore", "weight", "loss", "exploit")
    )


def fed(rounds: list[dict[str, Any]], arms: int, **options: Any) -> Sequences:
    sequences = Sequences(arms, RISK, **options)
    for each in rounds:
        sequences.update(**each)
    return sequences


def slow_lower(numbers: Any, risk: float, least: float, guesses: Any) -> float:
    """The bound by its definition: the mean at which the average of all terms is 1 / risk, found by
    halving.
    """
    values = np.asarray(numbers, np.float64)

    def wealth(mean: float) -> float:
        terms = []
        for guess in guesses:
            spread = np.sum((values - guess) ** 2)
            reach = guess - least
            for bet in BETS / (max(guess, 0.25) if least == 0.0 else 1.0):
                price = (
                    bet**2 / 2 if reach == 0 else (-np.log1p(-bet * reach) - bet * reach) / reach**2
                )
                terms.append(bet * np.sum(values - mean) - price * spread)
        return float(np.logaddexp.reduce(terms) - np.log(len(terms)))

    low, high = least, 2.0
    if wealth(low) < np.log(1 / risk):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if wealth(middle) >= np.log(1 / risk) else (low, middle)
    return low


@pytest.mark.parametrize("scale", [1.0, 3.0, 40.0])
def test_the_bound_of_a_mean_is_the_one_of_its_definition(scale: float) -> None:
    rng = np.random.default_rng(1)
    numbers = np.where(rng.random(400) < 1 / scale, scale * rng.random(400), 0.0)
    found = lower_mean(400, numbers.sum(), (numbers**2).sum(), 0.01)
    assert found == pytest.approx(slow_lower(numbers, 0.01, 0.0, GUESSES), abs=1e-7)


def test_bounds_of_a_difference_and_of_arrays_are_those_of_their_definitions() -> None:
    numbers = 1.5 * np.random.default_rng(2).random(500) - 0.5
    found = lower_difference(500, numbers.sum(), (numbers**2).sum(), 0.01)
    assert found == pytest.approx(slow_lower(numbers, 0.01, -1.0, [0.0]), abs=1e-7)
    counts, totals = np.array([0, 10, 1000]), np.array([0.0, 4.0, 400.0])
    together = lower_mean(counts, totals, totals, 0.01)
    assert together.tolist() == [
        float(lower_mean(n, s, s, 0.01)) for n, s in zip(counts, totals, strict=True)
    ]
    assert lower_mean(0, 0.0, 0.0, 0.01) == 0.0
    assert lower_difference(0, 0.0, 0.0, 0.01) == -1.0
    assert 0.999 < sum(share_of_batch(batch) for batch in range(1000)) < 1.0


def test_estimates_are_those_of_their_definitions() -> None:
    """Of an arm, the mean of its losses; of the others, weighted losses over weights."""
    rounds = observations(300, 3)
    sequences = fed(rounds, 3)
    explore, weight, loss, exploit = columns(rounds)

    def weighted(rows: Any) -> float:
        return float((rows * weight * loss).sum() / (rows * weight).sum())

    assert sequences.arm(1).estimate == pytest.approx(loss[explore == 1].mean())
    served = sequences.served()
    expected = weighted(explore == exploit)
    assert served.low < served.high
    assert served.estimate == pytest.approx(min(max(expected, served.low), served.high))
    beside = sequences.against_served(1)
    expected = weighted(explore == 1) - weighted(explore == exploit)
    assert beside.estimate == pytest.approx(min(max(expected, beside.low), beside.high))


def test_in_the_standard_game_an_arm_is_compared_without_levels() -> None:
    rounds = [{**each, "exploit": each["explore"]} for each in observations(300, 3)]
    sequences = fed(rounds, 3, coupled=True)
    explore, weight, loss, _ = columns(rounds)
    above = (explore == 1) * weight * loss - loss
    assert sequences.against_served(1).low == pytest.approx(
        float(lower_difference(300, above.sum(), (above**2).sum(), RISK * 0.9 / 6))
    )
    sequences = Sequences(2, coupled=True)
    for _ in range(1000):
        sequences.update(explore=0, weight=None, loss=0.9, exploit=0)
    assert 0.8 < sequences.served().low < 0.9 < sequences.served().high
    assert 0.8 < sequences.arm(0).low < 0.9 < sequences.arm(0).high


def test_rounds_that_could_not_explore_every_arm_count_only_for_those_they_could() -> None:
    rounds = observations(100, 3)
    sequences, some = fed(rounds, 3), [0, 1]
    for _ in range(50):
        sequences.update(explore=0, weight=2.0, loss=1.0, exploit=1, available=some)
    assert sequences.sums.counts[:, OTHER_ROUNDS].tolist() == [50, 50, 0]
    assert sequences.against_served(0) == fed(rounds, 3).against_served(0)
    assert sequences.difference(0, 1).low > fed(rounds, 3).difference(0, 1).low
    assert sequences.difference(0, 2) == fed(rounds, 3).difference(0, 2)
    assert sequences.arm(0).low > fed(rounds, 3).arm(0).low
    assert sequences.arm(2) == fed(rounds, 3).arm(2)
    sequences = Sequences(2)
    for _ in range(1000):
        sequences.update(explore=0, weight=1.0, loss=0.9, exploit=0)
    assert sequences.arm(1) == Interval(0.5, 0.0, 1.0)
    assert sequences.difference(1, 0)[1:] == (-1.0, 1.0)
    assert sequences.arm(0).low > 0.8
    sequences = Sequences(2)
    for _ in range(1000):
        sequences.update(explore=0, weight=1.0, loss=0.9, exploit=1)
    assert sequences.served() == Interval(0.5, 0.0, 1.0)


def test_a_new_arm_begins_one_comparison_anew_and_leaves_what_is_known() -> None:
    sequences = fed(observations(300, 3), 3)
    before, apart = sequences.arms(), sequences.difference(0, 1)
    sequences.add_arms(2)
    assert sequences.arms()[:3] == before
    assert sequences.arms()[3:] == [Interval(0.5, 0.0, 1.0)] * 2
    assert sequences.difference(0, 1) == apart
    assert sequences.difference(0, 3) == Interval(0.0, -1.0, 1.0)
    assert regret(sequences) is None
    assert sequences.against_served(0) == Interval(0.0, -1.0, 1.0)


def test_a_retired_arm_does_not_change_what_is_known_of_the_others() -> None:
    rounds = observations(300, 4)
    sequences, whole = fed(rounds[:150], 4), fed(rounds, 4)
    sequences.retire(3)
    for each in rounds[150:]:  # feedback of decisions made before
        sequences.update(**each)
    assert sequences.live == [0, 1, 2]
    assert sequences.arms() == whole.arms()
    assert sequences.difference(0, 1) == whole.difference(0, 1)
    sequences = Sequences(3)
    sequences.retire(2)
    sequences.update(explore=0, weight=2.0, loss=0.5, available=[0, 1])
    assert sequences.sums.rounds[ROUNDS] == 1


@pytest.mark.parametrize("drift", [True, False])
def test_saved_sequences_continue_bit_for_bit_and_know_nothing_of_arms_never_exploited(
    drift: bool,
) -> None:
    rounds = observations(200, 3)
    whole, part = fed(rounds, 3, drift=drift), fed(rounds[:120], 3, drift=drift)
    restored = Sequences.from_dict(json.loads(json.dumps(part.to_dict())))
    for each in rounds[120:]:
        restored.update(**each)
    assert restored.to_dict() == whole.to_dict()
    assert restored.arms() == whole.arms()
    rounds = [{**each, "exploit": None} for each in observations(200, 2)]
    sequences = fed(rounds, 2, drift=drift)
    assert sequences.served() == Interval(0.5, 0.0, 1.0)
    assert sequences.against_served(0) == Interval(0.0, -1.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"loss": 1.5}, LossError),
        ({"loss": float("nan")}, LossError),
        ({"loss": "0.5"}, LossError),
        ({"weight": 0.0}, ParameterError),
        ({"weight": float("inf")}, ParameterError),
        ({"explore": 3}, ArmError),
        ({"explore": -1}, ArmError),
        ({"exploit": 3}, ArmError),
        ({"available": [1, 2]}, ArmError),
        ({"available": [0, 3]}, ArmError),
        ({"available": []}, ArmError),
    ],
)
def test_bad_observations_change_nothing(changes: dict[str, Any], error: type[Exception]) -> None:
    sequences = fed(observations(10, 3), 3)
    before = json.dumps(sequences.to_dict())
    with pytest.raises(error, match=next(iter(changes))):
        sequences.update(**{"explore": 0, "weight": 2.0, "loss": 0.5, **changes})
    assert json.dumps(sequences.to_dict()) == before


def test_other_bad_arguments_are_named() -> None:
    with pytest.raises(ParameterError, match="risk = 0"):
        Sequences(2, risk=0)
    with pytest.raises(ParameterError, match="arms = 1"):
        Sequences(1)
    with pytest.raises(ArmError, match="other = 2"):
        Sequences(2).difference(0, 2)
    with pytest.raises(StateError, match=r"Sequences\.to_dict"):
        Sequences.from_dict({"format": 3})
    with pytest.raises(StateError, match="format = 2"):
        Sequences.from_dict({**Sequences(2).to_dict(), "format": 2})
    for name in ("moments", "rounds", "pairs"):
        with pytest.raises(StateError, match=r"Sequences\.to_dict"):
            Sequences.from_dict({**Sequences(2).to_dict(), name: "AAAA"})


def test_sums_that_no_observations_led_to_are_refused() -> None:
    """One number of an array is replaced at a time; what is taken all the same gives intervals."""
    sequences = Sequences(3)
    rng = np.random.default_rng(3)
    for explore in rng.integers(3, size=400):
        sequences.update(
            explore, 3.0, 0.2 + 0.3 * float(explore), exploit=0, law=[1 / 3, 1 / 3, 1 / 3]
        )
    sequences.add_arms(1)
    sequences.retire(1)
    good = sequences.to_dict()
    assert good["settled"], "the test needs one"
    homes = [(good, name) for name in ("moments", "counts", "batch", "rounds", "flow")]
    homes += [(good[kind], name) for kind in ("pairs", "singles") for name in good[kind]]
    whole = {"counts", "batch", "rounds", "owners", "powers", "look_powers", "centred_powers"}
    refused = taken = 0
    for home, name in homes:
        packed = home[name]
        pack: Any = pack_ints if name in whole else pack_floats
        unpack: Any = unpack_ints if name in whole else unpack_floats
        bad_values = (
            (-(2**60), 2**60) if name in whole else (np.nan, np.inf, -np.inf, 1e308, -1e308)
        )
        for place in rng.integers(len(unpack(packed)), size=12):
            for bad in bad_values:
                values = unpack(packed)
                values[place] = bad
                home[name] = pack(values)
                try:
                    changed = Sequences.from_dict(good)
                except StateError:
                    refused += 1
                    continue
                taken += 1
                with np.errstate(all="ignore"):
                    changed.update(0, 3.0, 0.5, exploit=0, law=[0.5, 0.0, 0.25, 0.25])
                    ends = [*changed.arms(), changed.served()]
                    ends += [changed.difference(0, 2), changed.against_served(2)]
                assert np.isfinite(ends).all(), (name, place, bad)
        home[name] = packed
    assert refused > 3 * taken
    wrong = {
        "risk": 2.0,
        "drift": 1,
        "coupled": None,
        "compared": [-1],
        "contenders": 1,
        "next_look": -1,
    }
    for name, value in wrong.items():
        with pytest.raises(StateError, match=name):
            Sequences.from_dict({**good, name: value})
    with pytest.raises(StateError, match="settled"):
        Sequences.from_dict({**good, "settled": [[0, 9, 0.1, 0.0, 0.2]]})


def test_weights_that_cannot_be_right_give_numbers_within_what_losses_can_differ() -> None:
    rng = np.random.default_rng(1)
    for weights in ([1e50], [1e50, 1e49, 2.0], [30.0], [1e20, 1.5]):
        for drift in (True, False):
            sequences = Sequences(arms=3, drift=drift)
            for n in range(400):
                exploit = int(rng.integers(3))
                sequences.update(n % 3, float(rng.choice(weights)), float(rng.integers(2)), exploit)
            again = Sequences.from_dict(json.loads(json.dumps(sequences.to_dict())))
            assert again.to_dict() == sequences.to_dict()
            pairs = [
                sequences.difference(0, 1),
                sequences.difference(1, 2),
                sequences.against_served(0),
            ]
            for low, values in ((-1.0, pairs), (0.0, [*sequences.arms(), sequences.served()])):
                for each in values:
                    assert low <= each.low <= each.estimate <= each.high <= 1.0
    with pytest.raises(ParameterError, match="weight = 1e\\+60: must be a finite number"):
        sequences.update(0, 1e60, 0.5)
    with pytest.raises(ParameterError, match="risk = 5e-324: must be a finite number above 1e-100"):
        Sequences(arms=2, risk=5e-324)


def rounds_of(count: int, arms: int, seed: int) -> list[Observation]:
    """Observations of all kinds; the losses of the first arm are higher than those of others."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    found = []
    for _ in range(count):
        law = rng.dirichlet(np.ones(arms))
        explore = int(rng.choice(arms, p=law))
        known = 1.0 / float(law[explore])
        weight = chance.choice((known, known, known, None, 1.0))
        available = chance.choice(
            (None, None, range(arms), tuple({explore, chance.randrange(arms)}))
        )
        exploit = chance.choice((None, explore, *range(arms)))
        seen_law = None if chance.random() < 0.2 else law
        loss = chance.random() if explore == 0 else 0.3 * chance.random()
        found.append(Observation(explore, weight, loss, exploit, available, seen_law))
    return found


@pytest.mark.parametrize("drift", [True, False])
@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("arms", [2, 8, 101])
def test_together_is_one_by_one(arms: int, coupled: bool, drift: bool) -> None:
    seen = rounds_of(300 if drift else 150, arms, arms)
    one, all_ = (Sums.start(arms, coupled=coupled, risk=0.3, drift=drift) for _ in range(2))
    start = 0
    for size in (1, 6, 64, 5, 250):
        add_all(all_, seen[start : start + size], start)
        for each in seen[start : start + size]:
            add_all(one, [each], start)
            start += 1
        assert all_.to_dict() == one.to_dict()
        assert json.dumps(all_.to_dict()), "plain values"
    assert start >= len(seen)
    assert one.out_since or arms > 2


def test_sequences_are_summed_when_they_are_asked() -> None:
    """Whatever is asked, and when, nothing is missing: arms come and go between the rounds."""
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
    seen = rounds_of(20, 3, 5)
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
