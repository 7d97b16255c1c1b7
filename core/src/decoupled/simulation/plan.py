"""From a specification to blocks of runs."""

import hashlib
import inspect
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Ints
from ..base.spec import Description
from ..base.validation import one_of, whole_number
from ..environments import Environment
from ..errors import ParameterError, UnsupportedError
from ..kernels.jit import is_ours, source_digest
from ..policies import Policy
from .admission import checked_sizes
from .baseline import Baseline
from .contextual import check_context, sees_context
from .traffic import DIRECT, Traffic, check_traffic

Checkpoints: TypeAlias = int | str | Sequence[int] | dict[str, Any]
"""The rounds at which regret is recorded; see `simulate`."""

DEFAULT_CHECKPOINTS = 100
DEVICES = ("cpu", "cuda")
BLOCK_SECONDS = 0.5  # what a block should take: long beside its overhead, short enough to lose


class Block(NamedTuple):
    """Runs `first` to `last - 1` of one policy.

    Attributes:
        policy: the place of the policy in the plan.
        first: the number of the first run.
        last: the number after that of the last run.

    >>> block = Block(policy=0, first=5, last=8)
    >>> block.last - block.first
    3
    """

    policy: int
    first: int
    last: int


@dataclass(frozen=True)
class Plan:
    """What to simulate. Results depend only on this, not on how it is executed.

    >>> import decoupled as dc
    >>> environment = dc.environments.Alternating(arms=2, gap=0.5)
    >>> plan = make_plan(dc.FTPL(), environment, horizon=100, runs=8, seed=0)
    >>> plan.rounds, list(plan.blocks(size=5))
    (800, [Block(policy=0, first=0, last=5), Block(policy=0, first=5, last=8)])
    """

    policies: tuple[Policy, ...]
    environment: Environment
    horizon: int
    runs: int
    seed: int
    checkpoints: tuple[int, ...]
    device: str = "cpu"  # functions such as exp may differ in their last digit from one to another
    traffic: Traffic = DIRECT

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, with the device if that is not the CPU, and with what traffic
        does to feedback.
        """
        values = {
            "policies": [policy.to_dict() for policy in self.policies],
            "environment": self.environment.to_dict(),
            "horizon": self.horizon,
            "runs": self.runs,
            "seed": self.seed,
            "checkpoints": list(self.checkpoints),
            **self.traffic.to_dict(),
        }
        if self.device != "cpu":
            values["device"] = self.device
        return values

    def digest(self) -> str:
        """A hash of the plan and of its code, so that no results of other code are used."""
        code = [
            _source_of(nested)
            for description in (*self.policies, self.environment)
            for nested in _nested_descriptions(description)
        ]
        content = json.dumps([source_digest(), code, self.to_dict()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def rounds(self) -> int:
        """The rounds of all runs of all policies."""
        return len(self.policies) * self.runs * self.horizon

    def block_size(self, workers: int = 1) -> int:
        """How many runs a block holds by a rough cost of a round, so that a worker gets several."""
        a_round = 60e-9 + 4e-9 * self.environment.arms
        if any(policy.in_python for policy in self.policies):
            a_round = 50e-6
        elif any(sees_context(policy, self.environment) for policy in self.policies):
            a_round *= 20
        seconds_a_run = self.horizon * a_round
        at_most = math.ceil(self.runs / max(16, 4 * workers))
        return max(1, min(int(BLOCK_SECONDS / seconds_a_run), at_most))

    def block_count(self, size: int) -> int:
        """How many blocks there are."""
        return len(self.policies) * math.ceil(self.runs / size)

    def blocks(self, size: int) -> Iterator[Block]:
        """All blocks. Runs advance slowest, so that finished blocks cover every policy alike."""
        for first in range(0, self.runs, size):
            for policy in range(len(self.policies)):
                yield Block(policy, first, min(first + size, self.runs))


def make_plan(
    policies: Policy | Sequence[Policy],
    environment: Environment,
    horizon: int,
    runs: int,
    seed: int,
    checkpoints: Checkpoints = DEFAULT_CHECKPOINTS,
    *,
    device: str = "cpu",
    traffic: Traffic = DIRECT,
) -> Plan:
    """Check every part of a specification.

    >>> import decoupled as dc
    >>> easy = dc.environments.Alternating(arms=2, gap=0.5)
    >>> make_plan(dc.FTPL(), easy, horizon=100, runs=8, seed=0, checkpoints=4).checkpoints
    (25, 50, 75, 100)
    """
    chosen = _checked_policies(policies)
    unchecked: object = environment
    if not isinstance(unchecked, Environment):
        rule = "is not an environment"
        raise ParameterError.of("environment", unchecked, rule, "see dc.environments")
    for description in (*chosen, environment):
        _check_plain(description)
    for policy in chosen:
        _check_can_run(policy, device)
    horizon, runs = checked_sizes(len(chosen), environment, horizon, runs, checkpoints)
    seed = whole_number("seed", seed, 0, "any will do, such as 0")
    one_of("device", device, DEVICES)
    rounds = checkpoint_rounds(checkpoints, horizon)
    check_context(chosen, environment, device, traffic)
    if not traffic.is_direct:
        check_traffic(traffic, chosen, environment.arms, horizon)
    return Plan(chosen, environment, horizon, runs, seed, rounds, device, traffic)


def _checked_policies(policies: object) -> tuple[Policy, ...]:
    """One policy or several, as a tuple of policies that differ."""
    if isinstance(policies, Policy) or not isinstance(policies, Iterable):
        policies = (policies,)
    chosen = tuple(policies)
    for policy in chosen:
        if not isinstance(policy, Policy):
            raise ParameterError.of("policies", policy, "is not a policy", "for example dc.FTPL()")
    labels = [policy.label for policy in chosen]
    if not chosen:
        rule = "must be one or more"
        raise ParameterError.of("policies", labels, rule, "for example [dc.FTPL()]")
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError.of("policies", label, "must appear once", "drop the repeated one")
    return chosen


def _check_can_run(policy: Policy, device: str) -> None:
    """Raise an error if the round loop cannot play a policy on a device."""
    if policy.interpreted:
        rule = (
            f"policies: {policy.label} runs in a learner only, because the round loop is compiled"
        )
        raise UnsupportedError(f"{rule}; use its compiled form, or policy.start(...)")
    if device == "cpu":
        return
    problem = f"device = {device!r}: cannot run {policy.label}"
    if policy.in_python:
        remedy = "use device='cpu', or compile the policy"
        raise UnsupportedError(f"{problem}, which is plain Python; {remedy}")
    if policy.contextual:
        raise UnsupportedError(f"{problem}, whose segments a learner keeps; use device='cpu'")


def policy_of(values: dict[str, Any]) -> Policy:
    """The policy or baseline that `to_dict` described."""
    return (Baseline if Baseline.find(values.get("name")) else Policy).from_dict(values)


def checkpoint_rounds(wanted: Checkpoints, horizon: int) -> tuple[int, ...]:
    """The rounds at which regret is recorded, as `simulate` takes them; the last is the horizon."""
    if isinstance(wanted, str) and wanted == "all":
        return tuple(range(1, horizon + 1))
    if isinstance(wanted, str) and wanted == "log":
        wanted = {"spacing": "log"}
    if isinstance(wanted, dict):
        for unknown in sorted(set(wanted) - {"count", "spacing"}):
            raise ParameterError(
                f"checkpoints: {unknown!r} is not known; use 'count' and 'spacing'"
            )
        spacing = one_of("checkpoints.spacing", wanted.get("spacing", "linear"), ("linear", "log"))
        return _spaced(wanted.get("count", DEFAULT_CHECKPOINTS), spacing, horizon)
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        return _spaced(wanted, "linear", horizon)
    listed = [whole_number("checkpoints", number, 1, "give round numbers") for number in wanted]
    if max(listed, default=horizon) > horizon:
        rule = f"must not exceed horizon = {horizon}"
        raise ParameterError.of("checkpoints", max(listed), rule, "drop it, or raise the horizon")
    return tuple(sorted({*listed, horizon}))


def _spaced(count: object, spacing: str, horizon: int) -> tuple[int, ...]:
    number = whole_number("checkpoints", count, 1, 'or "log", "all", or a list of rounds')
    if spacing == "log":
        rounds = np.geomspace(1, horizon, number) if number > 1 else np.array([horizon])
    else:
        rounds = np.linspace(horizon / number, horizon, number)
    return tuple(sorted({*np.round(rounds).astype(int).clip(1, horizon).tolist(), horizon}))


def _check_plain(description: Description) -> None:
    """Check that a user's own policy or environment is a hashable value of plain parameters."""
    try:
        hash(description)
        json.dumps([description.label, description.to_dict()], allow_nan=False)
    except (TypeError, ValueError) as error:
        rule = f"has a parameter that is not a plain value ({error})"
        remedy = "use numbers, strings and tuples of them"
        raise ParameterError(f"{type(description).__name__}: {rule}; {remedy}") from None


def _nested_descriptions(description: Description) -> list[Description]:
    """A description, and any that is a parameter of it."""
    descriptions = [description]
    for field in fields(description):  # type: ignore[arg-type]
        value = getattr(description, field.name)
        if isinstance(value, Description):
            descriptions.extend(_nested_descriptions(value))
    return descriptions


def _source_of(description: Description) -> str:
    """The source of a description's class and of its compiled functions, if the class is from
    outside this package; else nothing.
    """
    kind = type(description)
    if is_ours(kind):
        return ""
    sources: list[Any] = [kind]
    if not getattr(description, "in_python", False):
        sources.extend(function.py_func for function in getattr(description, "functions", ()))
    try:
        return "".join(inspect.getsource(source) for source in sources)
    except (OSError, TypeError):  # typed at a prompt: nothing to tell versions apart by
        return ""


def as_rounds(plan: Plan) -> Ints:
    """The checkpoints as compiled code takes them.

    >>> import decoupled as dc
    >>> easy = dc.environments.Alternating(arms=2, gap=0.5)
    >>> as_rounds(make_plan(dc.FTPL(), easy, horizon=100, runs=8, seed=0, checkpoints=2)).tolist()
    [50, 100]
    """
    return np.array(plan.checkpoints, np.int64)
