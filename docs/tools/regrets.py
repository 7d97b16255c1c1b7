"""Simulates the regrets of the page of measurements: the groups `regret`, `traffic`, `late`, `losing` and `recorded`.

Every policy of `regret` plays 1,000 runs of 10,000 rounds with seed 0 on each of its instances. Runs are seeded one by one,
so a policy has the same regret whether it is simulated alone or beside others.
"""

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.environments import Environment, LossTable, PunishLast
from decoupled.policies import Policy
from decoupled_lab import MovieLens
from decoupled_lab.paper.setup import (
    ADVERSARIES,
    BENCHMARKS,
    CENTRED_FTPL,
    PUNISHED_ARMS,
    TWO_RUNGS,
)
from decoupled_lab.paper.tuned import RATES
from decoupled_lab.report.claims import mean_of, ratio_of

Found = Iterator[tuple[str, dict[str, Any]]]
ROUNDS, RUNS, SEED = 10_000, 1_000, 0
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


# Regret with prompt feedback


def measure(only: str = "") -> Found:
    """Every record of `regret` whose instance's name begins with `only`."""
    for instance in INSTANCES:
        if not instance.startswith(only):
            continue
        more = COMPARED if instance in COMPARED_ON else {}
        players = {
            **CONTENDERS,
            **more,
            **({"two-rungs": TWO_RUNGS} if instance in PUNISHED else {}),
        }
        regrets: dict[str, Floats] = {}
        for name, policy in players.items():
            regrets[name] = finals(instance, policy)
            yield from of_policy(instance, name, policy, regrets[name])
        ratio = ratio_of("", regrets["recommended"], regrets["ftpl"])
        what = f"mean regret of Ladder() over FTPL()'s on {INSTANCES[instance].label}"
        ends = {"value": ratio.value, "low": ratio.low, "high": ratio.high}
        yield f"regret.{instance}.ratio", {**ends, "unit": "ratio", "what": what, "decimals": 3}
    if "tuned".startswith(only):
        yield from tuned()


def of_policy(instance: str, name: str, policy: Policy, regret: Floats) -> Found:
    """The mean regret of a policy, and some quantiles."""
    place, who = f"regret.{instance}.{name}", f"{policy.label} on {INSTANCES[instance].label}"
    yield place, mean_record(regret, who)
    quantiles = {"p99": 0.99} if name in CONTENDERS else {}
    if instance == MEDIANS_ON and name in MEDIANS:
        quantiles["median"] = 0.5
    for title, share in quantiles.items():
        what = f"{share:.0%} quantile of the regret of {who}"
        found = {
            "value": float(np.quantile(regret, share)),
            "unit": "regret",
            "what": what,
            "decimals": 0,
        }
        yield f"{place}.{title}", found


def tuned() -> Found:
    """Two policies at their best c, as `decoupled reproduce tuned` has them: chosen on one seed, judged on another."""
    families: dict[str, Callable[[float], Policy]] = {
        "ftpl": lambda c: dc.FTPL(c=c),
        "exp3": lambda c: dc.Exp3(c=c),
    }
    for name, at in families.items():
        best = min(RATES, key=lambda c: finals("alternating", at(c), RUNS // 2).mean())
        regret = finals("alternating", at(best), RUNS, SEED + 1)
        where = f"{INSTANCES['alternating'].label}, seed {SEED + 1}"
        what = f"{at(best).label}, the best c of the paper's sweep, on {where}"
        yield f"regret.tuned.{name}", mean_record(regret, what)


# Traffic

TRAFFIC: dict[str, dict[str, Any]] = {
    "delay": {"delay": 100},
    "geometric": {"delay": ("geometric", 100)},
    "missing": {"missing": 0.5},
    "slice": {"explore_share": 0.05},
}


def measure_traffic() -> Found:
    """Every record of `traffic`."""
    for world in ("alternating", "easy"):
        for kind, how in TRAFFIC.items():
            for name in ("ftpl", "recommended", "exp3", "tsallis"):
                regret = finals(world, CONTENDERS[name], traffic=dc.Traffic(**how))
                what = f"{CONTENDERS[name].label} on {INSTANCES[world].label} with {how}"
                yield f"traffic.{world}.{kind}.{name}", mean_record(regret, what)


# Late feedback, for the proof of the ladder

DELAYS: dict[str, Any] = {"0": 0, "40": 40, "200": 200, "geometric": ("geometric", 40)}
LATE_RUNS = 400
CHASED_ROUNDS, CHASED_RUNS = 16_000, 20


def chased(policy: Policy, delay: Any, seed: int) -> float:
    """The regret of a run in which the leader costs 1, and the other of two arms nothing.

    The leader has the smaller mean of the losses that have arrived; of equal arms, it is the last leader.
    """
    learner, draw = policy.start(arms=2, seed=seed), np.random.default_rng(seed)
    if isinstance(delay, tuple):
        delays = draw.geometric(1.0 / (1.0 + delay[1]), CHASED_ROUNDS) - 1
    else:
        delays = np.full(CHASED_ROUNDS, delay)
    due: dict[int, list[tuple[dc.Decision, float]]] = defaultdict(list)
    means, counts, costs = [0.0, 0.0], [0, 0], [0, 0]
    suffered = leader = 0
    for t, late in enumerate(delays.tolist()):
        if means[1 - leader] < means[leader]:
            leader = 1 - leader
        decision = learner.decide()
        suffered += decision.exploit == leader
        costs[leader] += 1
        due[t + late].append((decision, float(decision.explore == leader)))
        for early, loss in due.pop(t, ()):
            learner.observe(early, loss=loss)
            arm = int(early.explore)
            counts[arm] += 1
            means[arm] += (loss - means[arm]) / counts[arm]
    return float(suffered - min(costs))


def measure_late() -> Found:
    """Every record of `late`."""
    policies = {name: CONTENDERS[name] for name in ("recommended", "ftpl", "tsallis")}
    for kind, delay in DELAYS.items():
        for name, policy in policies.items():
            regret = np.array([chased(policy, delay, seed) for seed in range(CHASED_RUNS)])
            what = f"{policy.label} on two arms of which the leader costs 1 with delay={delay}"
            yield f"late.chased.{kind}.{name}", mean_record(regret, what)
            for world in ("alternating", "easy"):
                regret = finals(world, policy, LATE_RUNS, traffic=dc.Traffic(delay=delay))
                what = f"{policy.label} on {INSTANCES[world].label} with delay={delay}"
                yield f"late.{world}.{kind}.{name}", mean_record(regret, what)


# Where Ladder() has more regret than its short descriptions may suggest: gaps that shrink, and a memory that misleads.

SHRINKING_ARMS, SHRINKING_RUNS = 8, {10_000: 100, 100_000: 40, 1_000_000: 20}
WINDOW = PunishLast(8, window=100, gap=0.1, level=0.2)
WINDOW_RUNS = {10_000: 400, 100_000: 60}
LOSING_SEED = 1


def shrinking(rounds: int) -> LossTable:
    """Bernoulli losses: one arm has the mean 1/2 in every round, the others more by 1/sqrt(t), and at most 1."""
    means = np.full((rounds, SHRINKING_ARMS), 0.5)
    means[:, 1:] += np.minimum(0.5, 1.0 / np.sqrt(np.arange(1, rounds + 1)))[:, None]
    return LossTable(means, np.arange(rounds))


def measure_losing() -> Found:
    """Every record of `losing`."""
    ladder, without = dc.Ladder(), dc.Ladder(memory=None)
    for rounds, runs in SHRINKING_RUNS.items():
        results = dc.simulate(
            ladder, shrinking(rounds), rounds, runs, seed=LOSING_SEED, checkpoints=1
        )
        what = f"{ladder.label} with {SHRINKING_ARMS} arms, one better by t^(-1/2) in round t, T = {rounds:,}, {runs} runs"
        yield f"losing.shrinking.{rounds}", mean_record(results.final_regret(ladder), what)
    for rounds, runs in WINDOW_RUNS.items():
        results = dc.simulate(
            [ladder, without], WINDOW, rounds, runs, seed=LOSING_SEED, checkpoints=1
        )
        for name, policy in (("memory", ladder), ("without", without)):
            what = f"{policy.label} on {WINDOW.label}, T = {rounds:,}, {runs} runs"
            yield f"losing.window.{name}.{rounds}", mean_record(results.final_regret(policy), what)


# Recorded losses: DECOUPLED_DATA names a folder with real/NAME.npz, each with an array `losses`, rounds x arms, in [0, 1].
# The tables come from public data and are not part of the package. You can use your own.

RECORDED = {
    "digits": "digits-01-x3",
    "phishing": "phishing-01",
    "ridership": "chicago-forecast",
    "flights": "flights-carrier",
}
RECORDED_POLICIES: dict[str, Policy] = {
    **{name: CONTENDERS[name] for name in ("recommended", "centred", "ftpl", "leader")},
    "top-two": dc.TopTwo(),
    "forgetting": dc.Forgetting(dc.Ladder(), period=1_000),
}
LATE_ROUNDS, LATE_RECORDED_RUNS = 200, 50


def measure_recorded() -> Found:
    """Every record of `recorded`."""
    folder = os.environ.get("DECOUPLED_DATA")
    if not folder:
        raise SystemExit(
            "DECOUPLED_DATA: is not set; set it to the folder that holds real/NAME.npz"
        )
    tables = {}
    for name, file in RECORDED.items():
        with np.load(Path(folder) / "real" / f"{file}.npz") as kept:
            tables[name] = np.asarray(kept["losses"], float)
    worlds: dict[str, Environment] = {
        name: LossTable(losses, noise="none") for name, losses in tables.items()
    }
    for key, policy in RECORDED_POLICIES.items():
        for name, world in (*worlds.items(), ("punished", PunishLast(arms=8))):
            rounds = len(tables[name]) if name in tables else 5_000
            results = dc.simulate(policy, world, rounds, RUNS, seed=SEED, checkpoints=1)
            regret = mean_record(results.final_regret(policy), f"{policy.label} on {name}")
            yield f"recorded.{name}.{key}", regret
        for name in ("ridership", "flights"):
            runs = [
                regret_with_delay(policy, tables[name], seed) for seed in range(LATE_RECORDED_RUNS)
            ]
            what = f"{policy.label} on {name}-late"
            yield f"recorded.{name}-late.{key}", mean_record(np.array(runs), what)


def regret_with_delay(policy: Policy, losses: Floats, seed: int) -> float:
    """The regret of one run in which every loss is reported `LATE_ROUNDS` rounds late."""
    learner = policy.start(arms=losses.shape[1], seed=seed)
    waiting: deque[tuple[dc.Decision, float]] = deque()
    suffered = 0.0
    for row in losses:
        decision = learner.decide()
        suffered += row[decision.exploit]
        waiting.append((decision, row[decision.explore]))
        if len(waiting) > LATE_ROUNDS:
            early, loss = waiting.popleft()
            learner.observe(early, loss=loss)
    return float(suffered - losses.sum(axis=0).min())
