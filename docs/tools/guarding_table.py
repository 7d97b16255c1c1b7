"""Measures what `guardrails.md` says of rules about what is served, and what `preferences.md` says of preferences.

    python docs/tools/guarding_table.py incumbent
    python docs/tools/guarding_table.py preferences
    python docs/tools/guarding_table.py cheapest
    python docs/tools/guarding_table.py switching
    python docs/tools/guarding_table.py budgets 0 12     # runs 0 to 11, for docs/data/figures/guardrails-budget.csv
    python docs/tools/guarding_table.py saved 0 64

Regret is that of the arms served, by their true means.
"""

import random
import sys
from collections.abc import Iterator, Mapping
from statistics import mean, median, stdev
from typing import Any

import decoupled as dc

RUNS, ROUNDS = 100, 3_000
WATCHED = 40  # runs with an incumbent, each of which takes a second
MEANS = {
    "a": 0.5,
    "b": 0.3,
    "c": 0.6,
    "d": 0.6,
}  # an incumbent `a`, a better arm, and two worse ones
EQUAL = dict.fromkeys(MEANS, 0.5)


def interval(values: list[float]) -> str:
    """A mean with its 95 % interval."""
    half = 1.96 * stdev(values) / len(values) ** 0.5
    return f"{mean(values):.0f} ({mean(values) - half:.0f} to {mean(values) + half:.0f})"


def guarded(
    means: Mapping[str, float], rules: dc.Guardrails, seed: int
) -> tuple[float, int | None]:
    """The regret of one run, and the round in which the incumbent was left."""
    learner = dc.Learner(dc.Ladder(), list(means), seed, guardrails=rules)
    luck, regret, left, best = random.Random(seed), 0.0, None, min(means.values())
    for turn in range(1, ROUNDS + 1):
        decision = learner.decide()
        regret += means[str(decision.exploit)] - best
        learner.observe(decision, loss=float(luck.random() < means[str(decision.explore)]))
        if rules.incumbent and left is None and learner.inference.incumbent_released:
            left = turn
    return regret, left


def incumbents() -> Iterator[str]:
    """How often and when an incumbent is left, and the regret."""
    for incumbent, means in ((None, MEANS), ("a", MEANS), ("b", MEANS), ("a", EQUAL)):
        found = [
            guarded(means, dc.Guardrails(incumbent=incumbent), seed) for seed in range(WATCHED)
        ]
        rounds = [left for _, left in found if left is not None]
        when = f", in round {median(rounds):,.0f} (median)" if rounds else ""
        regret = interval([regret for regret, _ in found])
        yield f"{incumbent}, {means}: left in {len(rounds)} of {WATCHED} runs{when}, regret {regret}"


def compared(policy: dc.Policy, *, by_preference: bool, seed: int) -> float:
    """The regret of one run that learns from losses, or from which arm won by the law that is assumed."""
    learner, luck, regret = policy.start(list(MEANS), seed=seed), random.Random(seed), 0.0
    for _ in range(ROUNDS):
        decision = learner.decide()
        exploit, explore = MEANS[str(decision.exploit)], MEANS[str(decision.explore)]
        regret += exploit - min(MEANS.values())
        if by_preference:
            winner: Any = (
                "explore" if luck.random() < 0.5 + (exploit - explore) / 2.0 else "exploit"
            )
            learner.observe(decision, preference=winner)
        else:
            learner.observe(decision, loss=float(luck.random() < explore))
    return regret


def preferences() -> Iterator[str]:
    """Regret from losses and from preferences."""
    for policy in (dc.FTPL(), dc.Ladder()):
        for by_preference in (False, True):
            found = [
                compared(policy, by_preference=by_preference, seed=seed) for seed in range(RUNS)
            ]
            yield f"{policy.label} from {'preferences' if by_preference else 'losses'}: {interval(found)}"


def first_served(
    means: Mapping[str, float], prices: Mapping[str, float], drift: bool, seed: int
) -> float:
    """The round in which the rule first serves the cheapest arm `a`, infinity if it never does."""
    rules = dc.Guardrails(cheapest_within=0.1, prices=dict(prices), drift=drift)
    learner, luck = (
        dc.Learner(dc.Ladder(), list(means), seed, guardrails=rules),
        random.Random(seed),
    )
    for turn in range(1, ROUNDS + 1):
        decision = learner.decide()
        if decision.guard == "cheapest" and decision.exploit == "a":
            return float(turn)
        learner.observe(decision, loss=float(luck.random() < means[str(decision.explore)]))
    return float("inf")


def cheapest() -> Iterator[str]:
    """In how many runs the cheapest arm is served as good enough, and from when on, by how much it is worse."""
    for gap in (0.0, 0.05):
        for drift in (True, False):
            means, prices = {"a": 0.3 + gap, "b": 0.3, "c": 0.5}, {"a": 1.0, "b": 2.0, "c": 3.0}
            rounds = [first_served(means, prices, drift, seed) for seed in range(WATCHED // 2)]
            often = sum(each <= ROUNDS for each in rounds)
            yield f"worse by {gap}, drift={drift}: in {often} of {WATCHED // 2} runs, median round {median(rounds)}"


SWITCHING_RUNS = 32


def kept(task: Any, policy: dc.Policy, margin: float | None, run: int) -> tuple[float, int]:
    """The regret against the best arm of each round, and the switches, of one key in a run of a task of the benchmark."""
    table, luck = task.world(run).table(task.rounds), random.Random(run)
    rules = dc.Guardrails(switch_margin=margin)
    learner = dc.Learner(policy, table.rows.shape[1], run, guardrails=rules)
    regret, switches, last = 0.0, 0, None
    for at in table.row_at.tolist():
        means, decision = table.rows[at], learner.decide(key="key")
        regret += float(means[decision.exploit] - means.min())
        switches += last is not None and decision.exploit != last
        last = decision.exploit
        learner.observe(decision, loss=float(luck.random() < means[decision.explore]))
    return regret, switches


def switching() -> Iterator[str]:
    """Regret and switches of one key with a margin, against none, paired by run."""
    from decoupled_lab.benchmark.suite import SUITE

    for task in [each for each in SUITE.tasks("standard") if each.group == "switches"]:
        for policy in (dc.FTPL(), dc.Ladder()):
            before: list[float] = []
            for margin in (None, 0.01, 0.03):
                runs = [kept(task, policy, margin, run) for run in range(SWITCHING_RUNS)]
                whole = [regret + switches for regret, switches in runs]
                before = before or whole
                more = interval([one - two for one, two in zip(whole, before, strict=True)])
                regret, switches = (
                    interval([float(x) for x in each]) for each in zip(*runs, strict=True)
                )
                found = (
                    f"regret {regret}, switches {switches}, both {interval(whole)}, more by {more}"
                )
                yield f"{task.name}, {policy.label}, {margin}: {found}"


WORLDS: dict[str, tuple[int, list[list[float]]]] = {
    "nothing changes": (20_000, [[0.2, 0.5]]),
    "one change": (20_000, [[0.2, 0.5], [0.5, 0.2]]),
    "drift-4": (8_000, [[0.25 if arm == best else 0.5 for arm in range(4)] for best in range(4)]),
}
BUDGETS = {
    "fixed share": [dc.Budget(share=share) for share in (0.01, 0.03, 0.1, 0.3)],
    "0.1, then decided_share": [
        dc.Budget(share=0.1, decided_share=share) for share in (0.01, 0.03)
    ],
}


def budgeted(
    policy: dc.Policy, budget: dc.Budget, rounds: int, phases: list[list[float]], run: int
) -> tuple[int, float, int]:
    """The looks, the regret against the best arm of each round, and the alarms, in a run of a world."""
    learner, meter, luck = (
        policy.start(len(phases[0]), seed=run),
        dc.Meter(budget, seed=run),
        random.Random(run),
    )
    learner.watch()
    regret = 0.0
    for turn in range(rounds):
        means, uniform, decision = (
            phases[turn * len(phases) // rounds],
            luck.random(),
            meter.decide(learner),
        )
        regret += means[int(decision.exploit)] - min(means)  # type: ignore[arg-type]
        if isinstance(decision, dc.Decision):
            learner.observe(decision, loss=float(uniform < means[int(decision.explore)]))
    alarm = learner.inference.alarm
    return meter.explored, regret, 0 if alarm is None else alarm.raised


def runs_of(default: int) -> range:
    """The runs that the command line names."""
    first, last = (int(each) for each in sys.argv[2:4]) if len(sys.argv) > 3 else (0, default)
    return range(first, last)


def budgets() -> Iterator[str]:
    """Looks and regret by budget, in a table that a figure is drawn from."""
    yield "panel,series,kind,x,y,low,high"
    for world, (rounds, phases) in WORLDS.items():
        for series, those in BUDGETS.items():
            for budget in those:
                found = [budgeted(dc.Ladder(), budget, rounds, phases, run) for run in runs_of(12)]
                looks, regrets = mean(each[0] for each in found), [each[1] for each in found]
                half = 2.2 * stdev(regrets) / len(regrets) ** 0.5  # Student's t of 12 runs, 95 %
                ends = f"{mean(regrets):.6g},{mean(regrets) - half:.6g},{mean(regrets) + half:.6g}"
                yield f'"{world}, {rounds:,} requests","{series}",points,{looks:.6g},{ends}'
                print(budget, mean(each[2] for each in found), "alarms a run", file=sys.stderr)


def saved() -> Iterator[str]:
    """What a share of a hundredth, once it is decided, saves of a tenth with two close arms; paired by run."""
    for run in runs_of(64):
        both = [dc.Budget(share=0.1), dc.Budget(share=0.1, decided_share=0.01)]
        found = [budgeted(dc.Ladder(), budget, 50_000, [[0.3, 0.2]], run) for budget in both]
        yield f"run {run}: looks {found[0][0]} and {found[1][0]}, regret {found[0][1]:.1f} and {found[1][1]:.1f}"


if __name__ == "__main__":
    parts = {
        "incumbent": incumbents,
        "preferences": preferences,
        "cheapest": cheapest,
        "switching": switching,
        "budgets": budgets,
        "saved": saved,
    }
    for line in parts[sys.argv[1]]():
        print(line, flush=True)
