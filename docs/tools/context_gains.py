"""Measures what a context is worth: the numbers and the picture of `context.md`.

    DECOUPLED_DATA=folder python docs/tools/measure.py context vectors

The folder holds `real/*.npz`, tables of `losses`, rounds x arms, for a table of 58 arms, and `context/mmlu.npz`: `wrong`,
questions x 2, 1 where a model's answer is wrong, the cheap model first;
`segment`, the number of each question's subject; and `names`, the subjects. It comes from public data of RouteLLM and is
not part of this package. Without it nothing is measured.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.environments import ContextTable
from decoupled_lab.report.claims import mean_of

PRICES = (0.05, 0.10, 0.15, 0.20)
CONTEXTS = {"subject": "the subject of a question", "noise": "57 labels that tell nothing"}
RUNS, SEED = 40, 0
FIELD = "subject"
POLICIES: dict[str, dc.Policy] = {
    "contextual": dc.ContextualLadder(segments=(FIELD,)),
    "by-hand": dc.baselines.PerSegment(dc.Ladder(), [FIELD]),
    "thompson": dc.baselines.PerSegment(dc.ThompsonSampling(), [FIELD]),
    "pooled": dc.Ladder(),
}


def questions() -> tuple[Floats, list[str]] | None:
    """Who answers what wrong, and the subjects; None if the data is not at hand."""
    folder = os.environ.get("DECOUPLED_DATA")
    file = Path(folder or ".") / "context/mmlu.npz"
    if folder is None or not file.is_file():
        return None
    with np.load(file) as kept:
        return np.asarray(kept["wrong"], float), kept["names"][kept["segment"]].tolist()


def table(wrong: Floats, subjects: list[str], price: float, context: str) -> ContextTable:
    """The losses at a price of the dear model, with the subjects, or with labels that tell nothing."""
    losses = (wrong + np.array([0.0, price])) / (1.0 + price)
    if context == "noise":
        subjects = np.random.default_rng(1).permutation(subjects).tolist()
    return ContextTable(losses, {FIELD: subjects}, order="shuffled")


def gains(world: ContextTable, runs: int = RUNS) -> dict[str, Floats]:
    """What each policy gains over the best single arm, one number per run."""
    rounds = len(world.losses)
    results = dc.simulate(list(POLICIES.values()), world, rounds, runs, seed=SEED, checkpoints=1)
    return {name: -results.final_regret(policy) for name, policy in POLICIES.items()}


def many_arms(order: str, labels: int = 5) -> ContextTable:
    """Every recorded table side by side, and the mean of each, with labels that tell nothing: 58 arms."""
    tables = []
    for file in sorted((Path(os.environ["DECOUPLED_DATA"]) / "real").glob("*.npz")):
        with np.load(file) as kept:
            tables.append(np.asarray(kept["losses"], float))
    rounds = max(len(each) for each in tables)
    long = [
        np.resize(each, (rounds, each.shape[1])) for each in tables
    ]  # shorter ones again and again
    losses = np.hstack([*long, *(each.mean(axis=1, keepdims=True) for each in long)])
    drawn = np.random.default_rng(1).integers(labels, size=rounds)
    return ContextTable(losses, {FIELD: drawn.astype(str).tolist()}, order=order)


def measure_many_arms() -> Iterator[tuple[str, dict[str, Any]]]:
    """Regret where there are many arms and the context tells nothing."""
    for order in ("given", "shuffled"):
        world = many_arms(order)
        policies = [POLICIES["contextual"], POLICIES["pooled"]]
        found = dict(zip(("contextual", "pooled"), many_regrets(policies, world), strict=True))
        found["contextual-30"] = many_regrets(policies[:1], many_arms(order, 30))[0]
        for name, regret in found.items():
            mean, policy = mean_of("", regret), POLICIES[name.removesuffix("-30")]
            labels = f"{30 if name.endswith('-30') else 5} labels that tell nothing, order {order}"
            what = f"mean regret of {policy.label} with {world.arms} recorded arms and {labels}"
            ends = {"value": mean.value, "low": mean.low, "high": mean.high}
            print("many", order, name, ends, flush=True)
            yield (
                f"context.many.{order}.{name}",
                {**ends, "unit": "loss", "decimals": 0, "what": what},
            )


def many_regrets(policies: list[Any], world: ContextTable) -> list[Floats]:
    """The regret of each policy, one number per run."""
    results = dc.simulate(policies, world, len(world.losses), 96, seed=SEED, checkpoints=1)
    return [results.final_regret(policy) for policy in policies]


def measure() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of this group."""
    found = questions()
    if found is None:
        raise SystemExit(
            "DECOUPLED_DATA: names no folder with context/mmlu.npz, so nothing is measured"
        )
    for context, told in CONTEXTS.items():
        for price in PRICES:
            world, place = table(*found, price, context), f"context.{context}.{100 * price:.0f}"
            shared = {"unit": "loss", "decimals": 0}
            about = f"on MMLU at a price of {price}, with {told}"
            if context == FIELD:
                most = world.available(np.arange(len(world.losses)))
                what = f"what the best arm for each segment gains over the best single arm {about}"
                yield f"{place}.available", {"value": most, **shared, "what": what}
            for name, gained in gains(world).items():
                mean, what = mean_of("", gained), f"mean gain of {POLICIES[name].label} {about}"
                ends = {"value": mean.value, "low": mean.low, "high": mean.high}
                print(place, name, round(mean.value), flush=True)
                yield f"{place}.{name}", {**ends, **shared, "what": what}
    yield from measure_many_arms()


PRICE, LENGTH = 0.10, 384  # where the gain is large; of an embedding
ABOUT = "on MMLU at a price of 0.1"


def vectors_of(subjects: list[str]) -> dict[str, tuple[str, Any]]:
    """What stands for prompts, which the data lacks: a text or an embedding for each question, and in words."""
    rng, names = np.random.default_rng(1), sorted(set(subjects))
    at = np.array([names.index(each) for each in subjects])
    centres, noise = (
        rng.normal(size=(count, LENGTH)) / LENGTH**0.5 for count in (len(names), len(at))
    )
    simulated = "a simulated embedding; two questions of a subject have the cosine"
    texts = np.array([each.replace("_", " ") for each in subjects], object)
    found: dict[str, tuple[str, Any]] = {"text": ("the name of the subject as a text", texts)}
    for cosine in (0.8, 0.5):
        scale = (cosine / (1.0 - cosine)) ** 0.5
        found[f"cosine-{10 * cosine:.0f}"] = (f"{simulated} {cosine}", scale * centres[at] + noise)
    order = rng.permutation(len(at))
    shuffled = {
        f"shuffled-{name}": (f"{what}, shuffled", each[order])
        for name, (what, each) in found.items()
    }
    return found | {name: shuffled[name] for name in ("shuffled-text", "shuffled-cosine-8")}


def vector_table(
    losses: Floats, values: Any, count: int
) -> tuple[dc.ContextualLadder, ContextTable]:
    """A policy for texts or embeddings, and their world."""
    length = 0 if values.dtype == object else LENGTH
    policy = dc.ContextualLadder(vectors=("prompt",), vector_length=length, vector_numbers=count)
    rows = [[*policy.spread("prompt", each).values()] for each in values]
    columns = dict(zip(policy.all_numbers, np.array(rows).T, strict=True))
    return policy, ContextTable(losses, columns, order="shuffled")


def measure_vectors() -> Iterator[tuple[str, dict[str, Any]]]:
    """Gains with texts and embeddings, and what they cost where they tell nothing, beside labels that tell nothing."""
    found = questions()
    if found is None:
        raise SystemExit(
            "DECOUPLED_DATA: names no folder with context/mmlu.npz, so nothing is measured"
        )
    noise = gains(table(*found, PRICE, "noise"))
    blind, losses = noise["pooled"], table(*found, PRICE, FIELD).losses
    yield record("blind", f"mean gain of Ladder() {ABOUT}", blind)
    yield record(
        "cost.labels",
        f"what 57 labels that tell nothing cost beside Ladder() {ABOUT}",
        blind - noise["contextual"],
    )
    for name, (what, values) in vectors_of(found[1]).items():
        for count in (16, 32):
            policy, world = vector_table(np.array(losses), values, count)
            gained = -dc.simulate(
                policy, world, len(losses), RUNS, seed=SEED, checkpoints=1
            ).final_regret(policy)
            told = f"{ABOUT} with {count} numbers of {what}"
            yield record(f"{name}.{count}", f"mean gain of ContextualLadder {told}", gained)
            if name.startswith("shuffled"):
                yield record(
                    f"cost.{name}.{count}",
                    f"what ContextualLadder costs beside Ladder() {told}",
                    blind - gained,
                )


def record(name: str, what: str, values: Floats) -> tuple[str, dict[str, Any]]:
    """A record of losses, one for each run."""
    mean = mean_of("", values)
    ends = {"value": mean.value, "low": mean.low, "high": mean.high}
    return f"vectors.{name}", {**ends, "unit": "loss", "decimals": 0, "what": what}
