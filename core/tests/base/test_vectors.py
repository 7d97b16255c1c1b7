"""Embeddings and texts as numbers: against slow twins, their laws, and what a learner makes of
them.
"""

import hashlib
import json
import math
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from support.statistics import chi_square_p

TEXTS = (
    "Prove that √2 is irrational.",
    "a",
    "",
    "def f(x):\n    return x  # 🦓\ud800",
    "word " * 3_000,
)
POLICY = dc.ContextualLadder(("subject",), ("tokens",), vectors=("prompt",), vector_numbers=5)
EMBEDDED = dc.ContextualLadder(vectors=("e",), vector_length=3)
WORDS = {
    "code": ["def", "return", "class", "import"],
    "chat": ["hello", "thanks", "music", "friend"],
}


def sign(row: int, column: int) -> int:
    byte = hashlib.shake_128(f"decoupled {row}".encode()).digest(512)[column // 8]
    return 1 if byte >> (7 - column % 8) & 1 else -1


def projected(vector: list[float], numbers: int) -> list[float]:
    norm = math.hypot(*vector)
    rows = (
        [sign(row, column) * each for column, each in enumerate(vector)] for row in range(numbers)
    )
    return [math.fsum(row) / norm if norm else 0.0 for row in rows]


def buckets(text: str) -> list[int]:
    text = f" {' '.join(text[:10_000].lower().split())} "
    found = []
    for size in (3, 4, 5):
        for gram in (text[at : at + size] for at in range(len(text) - size + 1)):
            powers = (pow(0x9E3779B97F4A7C15, size - at, 2**64) for at in range(size))
            found.append(
                sum(ord(c) * power for c, power in zip(gram, powers, strict=True)) % 2**64 >> 52
            )
    return found


@pytest.mark.parametrize(("length", "numbers"), [(1, 1), (3, 32), (13, 5), (4_096, 2)])
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_the_projection_is_its_twins(length: int, numbers: int, scale: float) -> None:
    vector = (scale * np.random.default_rng(length).normal(size=length)).tolist()
    expected = projected([each / scale for each in vector], numbers)
    assert dc.project(vector, numbers) == pytest.approx(expected, abs=1.5e-6)
    assert dc.project(np.array(vector), 32)[:numbers] == dc.project(vector, numbers)
    assert dc.project([0] * length, numbers) == [0.0] * numbers


@pytest.mark.parametrize("text", TEXTS)
def test_the_hash_of_a_text_is_its_twins(text: str) -> None:
    counts = np.bincount(buckets(text), minlength=4_096)
    assert dc.hash_text(text, 3) == pytest.approx(
        projected(np.sqrt(counts).tolist(), 3), abs=1.5e-6
    )


def test_projections_keep_inner_products_and_buckets_are_even() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=(4_000, 300))
    second = first + rng.normal(size=first.shape)
    one, two = (np.array([dc.project(each, 32) for each in many]) for many in (first, second))
    for left, right, cosine in ((one, one, 1.0), (one, two, math.sqrt(0.5)), (one, two[::-1], 0.0)):
        products = (left * right).mean(
            axis=0
        )  # each of 32 numbers; a false alarm in 32,000 seeds or so
        error = (left * right).std(axis=0) / math.sqrt(len(left))
        assert np.abs((products - cosine) / error).max() < 5.0
    text = "".join(map(chr, rng.integers(97, 123, size=10_000)))

    def p_value(places: list[int]) -> float:
        counts = np.bincount(np.array(places) // 64, minlength=64)
        return chi_square_p(counts, np.full(64, 1 / 64))

    # Grams overlap, so every fifth counts. A hash by the sum of the characters is found out.
    assert p_value(buckets(text)[::5]) > 1e-4
    assert (
        p_value([sum(map(ord, text[at : at + 5])) * 7 % 4_096 for at in range(0, 9_000, 5)]) < 1e-9
    )


def requests(seed: int, count: int) -> list[tuple[dict[str, Any], str]]:
    rng = np.random.default_rng(seed)
    kinds = [str(each) for each in rng.choice([*WORDS], size=count)]
    said = [" ".join(rng.choice(WORDS[kind], size=8)) for kind in kinds]
    told = zip(said, rng.normal(size=count).tolist(), kinds, strict=True)
    return [({"prompt": text, "tokens": size, "subject": "a"}, kind) for text, size, kind in told]


def test_a_text_is_learned_as_its_numbers_are_by_any_door() -> None:
    learner, flat = POLICY.start(["a", "b"], seed=3), POLICY.start(["a", "b"], seed=3)
    log: list[dict[str, Any]] = []
    for turn, (context, kind) in enumerate(requests(1, 300)):
        numbers = {name: each for name, each in context.items() if name != "prompt"}
        numbers |= dict(
            zip(POLICY.all_numbers[1:], dc.hash_text(context["prompt"], 5), strict=True)
        )
        made, twin = learner.decide(context=context), flat.decide(context=numbers)
        assert made[1:] == twin[1:]
        log.append({"explore": made.explore, "propensity": made.propensity, "context": context})
        log[-1]["loss"] = 0.1 if (made.explore == "a") == (kind == "code") else 0.9
        for each, decision in ((learner, made), (flat, twin)):
            each.observe(decision, loss=log[-1]["loss"])
        if turn == 150:
            learner = dc.Learner.from_json(learner.to_json())
    found, other = (json.loads(each.to_json())["content"] for each in (learner, flat))
    assert (found["learned"], found["context"]) == (other["learned"], other["context"])
    replayed = POLICY.start(["a", "b"], seed=3)
    assert replayed.replay(log) == len(log)
    for each in (learner, replayed):  # 0.5 is what a coin would have
        laws = [
            (each.exploitation_probabilities(context=asked), kind)
            for asked, kind in requests(2, 50)
        ]
        assert np.mean([law[int(kind != "code")] for law, kind in laws]) > 0.9
    missing: dict[str, Any] = {"tokens": 0.3, "subject": "a"}
    law = learner.exploitation_probabilities(context=missing | {"prompt": None})
    assert law.tolist() == flat.exploitation_probabilities(context=missing).tolist()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([0.5, 0.5], r"context\['e'\]: has 2 numbers, and vector_length = 3"),
        ([0.5] * 5_000, "1 to 4,096"),
        ([0.5, math.nan, 1.0], "finite"),
        ([0.5, math.inf, 1.0], "finite"),
        (["a"] * 3, "finite"),
        ("zebra", "finite"),
        ([[1.0], [2.0, 3.0]], "finite"),
        ([True] * 3, "finite"),
        (7, "finite"),
        ([10**400] * 3, "finite"),
    ],
)
def test_what_is_no_vector_is_refused_and_changes_nothing(value: Any, words: str) -> None:
    learner = EMBEDDED.start(2, seed=1)
    before = learner.to_json()
    for call in (learner.decide, learner.exploit, learner.exploration_probabilities):
        with pytest.raises(dc.ParameterError, match=words) as caught:
            call(context={"e": value})
        assert "zebra" not in str(caught.value)
    with pytest.raises(dc.ParameterError, match=words):
        learner.replay([{"explore": 0, "propensity": 0.5, "loss": 0.5, "context": {"e": value}}])
    assert learner.to_json() == before
    learner.decide(context={"e": np.array([1, 2, 3])})
    text: Any
    for text in (["def f(x): pass"], 7, b"x"):
        with pytest.raises(dc.ParameterError, match="must be a string"):
            POLICY.start(2, seed=1).decide(context={"prompt": text})


def test_a_policy_has_at_most_32_different_numbers() -> None:
    wrong: Any
    for wrong in (
        {"vectors": ("a", "b", "c")},
        {"vectors": ("a",), "numbers": ("a.3",)},
        {"vectors": "a"},
        {"vectors": ("a",), "vector_length": 4_097},
        {"vectors": ("a",), "vector_numbers": 0},
    ):
        with pytest.raises(dc.ParameterError, match="vector"):
            dc.ContextualLadder(**wrong)
    for numbers in (0, 33):
        with pytest.raises(dc.ParameterError, match="numbers"):
            dc.project([1.0], numbers)
    assert dc.Policy.from_json(POLICY.to_json()) == POLICY
