"""Simulates the regrets that the pages quote: one set of runs for all of them, so that no two pages differ.

Every policy plays 1,000 runs of 10,000 rounds with seed 0 on each of its instances. Runs are seeded one by one, so a
policy has the same regret whether it is simulated alone or beside others.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.environments import Environment, MovieLens, PunishLast
from decoupled.policies import Policy
from decoupled_lab.paper.setup import (
    ADVERSARIES,
    BENCHMARKS,
    CENTRED_FTPL,
    EXP3_CENTRED,
    PUNISHED_ARMS,
    TWO_RUNGS,
)
from decoupled_lab.paper.tuned import RATES
from decoupled_lab.report.claims import mean_of, ratio_of

ROUNDS, RUNS, SEED = 10_000, 1_000, 0
TAIL = 0.99
DIRECT = dc.Traffic()
PUNISHED = {f"punished-{arms}": PunishLast(arms=arms) for arms in PUNISHED_ARMS}
INSTANCES: dict[str, Environment] = {
    "alternating": BENCHMARKS["alternating"],
    "easy": BENCHMARKS["stochastic easy"],
    "hard": BENCHMARKS["stochastic hard"],
    **PUNISHED,
    "moving": ADVERSARIES["adaptive alternating"],
    **{f"movies-{arms}": MovieLens(arms) for arms in (32, 256)},
}
CONTENDERS: dict[str, Policy] = {
    "ftpl": dc.FTPL(),
    "centred": CENTRED_FTPL,
    "recommended": dc.Ladder(),
    "leader": dc.FollowTheLeader(),
    "tsallis": dc.TsallisINF(),
    "exp3": dc.Exp3(),
    "exp3-centred": EXP3_CENTRED,
}
COMPARED: dict[str, Policy] = {
    "avner": dc.AvnerExp3(horizon=ROUNDS),
    "jin": dc.JinHybrid(),
    "top-two": dc.TopTwo(),
    "coupled-tsallis": dc.CoupledTsallisINF(estimator="reduced-variance"),
    "thompson": dc.ThompsonSampling(),
    "coupled-ftpl": dc.CoupledFTPL(resampling="conditional"),
    "coupled-exp3": dc.CoupledExp3(),
    "ucb1": dc.UCB1(),
}
COMPARED_ON = ("alternating", "easy", "punished-8")  # the columns of choosing.md
MEDIANS = ("ftpl", "tsallis", "exp3", "leader")  # the rows of reproduce.md
MEDIANS_ON = "alternating"
TUNED, TUNED_ON = "tuned", "alternating"


def finals(
    instance: str, policy: Policy, runs: int = RUNS, seed: int = SEED, traffic: dc.Traffic = DIRECT
) -> Floats:
    """The regret of every run after the last round."""
    world = INSTANCES[instance]
    results = dc.simulate(policy, world, ROUNDS, runs, seed=seed, checkpoints=1, traffic=traffic)
    return results.final_regret(policy)


def mean_record(regret: Floats, what: str) -> dict[str, Any]:
    """The mean of a regret over runs, with its interval, as a record."""
    mean = mean_of("", regret)
    ends = {"value": mean.value, "low": mean.low, "high": mean.high}
    return {**ends, "unit": "regret", "what": f"mean regret of {what}", "decimals": 0}


def players(instance: str) -> dict[str, Policy]:
    """The policies that play an instance."""
    more = COMPARED if instance in COMPARED_ON else {}
    return {**CONTENDERS, **more, **({"two-rungs": TWO_RUNGS} if instance in PUNISHED else {})}


def measure(only: str = "", runs: int = RUNS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of this group whose instance's name begins with `only`."""
    for instance in INSTANCES:
        if not instance.startswith(only):
            continue
        regrets: dict[str, Floats] = {}
        for name, policy in players(instance).items():
            regrets[name] = finals(instance, policy, runs)
            yield from of_policy(instance, name, policy, regrets[name])
        yield ratio(instance, regrets["recommended"], regrets["ftpl"])
    if TUNED.startswith(only):
        yield from tuned(runs)


def of_policy(
    instance: str, name: str, policy: Policy, regret: Floats
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The mean regret of a policy, and the quantiles that pages show."""
    place, who = f"regret.{instance}.{name}", f"{policy.label} on {INSTANCES[instance].label}"
    yield place, mean_record(regret, who)
    quantiles = {"p99": TAIL} if name in CONTENDERS else {}
    if instance == MEDIANS_ON and name in MEDIANS:
        quantiles["median"] = 0.5
    for title, share in quantiles.items():
        what = f"{share:.0%} quantile of the regret of {who}"
        found = {"value": float(np.quantile(regret, share)), "unit": "regret", "what": what, "decimals": 0}
        yield f"{place}.{title}", found


def ratio(instance: str, above: Floats, below: Floats) -> tuple[str, dict[str, Any]]:
    """How the recommended policy compares with the paper's, paired by run."""
    found = ratio_of("", above, below)
    what = f"mean regret of Ladder() over FTPL()'s on {INSTANCES[instance].label}"
    ends = {"value": found.value, "low": found.low, "high": found.high}
    return f"regret.{instance}.ratio", {**ends, "unit": "ratio", "what": what, "decimals": 3}


def tuned(runs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Two policies at their best c, as `decoupled reproduce tuned` has them: chosen on one seed, judged on another."""
    families: dict[str, Callable[[float], Policy]] = {
        "ftpl": lambda c: dc.FTPL(c=c),
        "exp3": lambda c: dc.Exp3(c=c),
    }
    for name, at in families.items():
        best = min(RATES, key=lambda c: finals(TUNED_ON, at(c), runs // 2).mean())
        regret = finals(TUNED_ON, at(best), runs, SEED + 1)
        what = f"{at(best).label}, the best c of the paper's sweep, on {INSTANCES[TUNED_ON].label}, seed {SEED + 1}"
        yield f"regret.{TUNED}.{name}", mean_record(regret, what)
