"""One policy for each segment, which learn nothing from each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from ...environments import ContextTable
from ...environments.context_table import check_columns
from ...errors import ParameterError
from ...policies import Ladder, Policy
from ..contextual import draws_of, play_blind
from ..cpu import table_loop
from .base import Baseline, TableRun


@dataclass(frozen=True)
class PerSegment(Baseline):
    """A policy for each segment, as one would keep a dictionary of learners by hand.

    Each begins with nothing and sees only the rounds of its segment. With a policy of the standard game, such as
    `ThompsonSampling()`, this is how one personalises where only what is served is seen.

    Args:
        policy: the policy of each segment.
        segments: the columns of the context whose values make a segment.

    >>> import decoupled as dc
    >>> losses, subjects = [[0.1, 0.9], [0.8, 0.2]] * 100, ["law", "art"] * 100
    >>> table = dc.environments.ContextTable(losses, {"subject": subjects}, order="shuffled")
    >>> each = dc.baselines.PerSegment(dc.Ladder(), segments=["subject"])
    >>> results = dc.simulate([each, dc.Ladder()], table, horizon=200, runs=20, seed=0)
    >>> results.summary()["gain"].round().to_dict()    # of 60 that the best arm for each segment gains
    {'Ladder for each subject': 58.0, 'Ladder': -3.0}
    """

    policy: Any
    segments: Sequence[str] = field(metadata={"depth": 1})

    def __post_init__(self) -> None:
        given: Any = self.policy
        policy = Policy.from_dict(given) if isinstance(given, dict) else given
        if not isinstance(policy, Policy):
            rule = "must be a policy"
            raise ParameterError.of("policy", policy, rule, "for example dc.Ladder()")
        if policy.contextual:
            rule = "knows the context itself, so it needs no segments of its own"
            raise ParameterError(f"policy: {policy.label} {rule}; use dc.Ladder()")
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "segments", field_names("segments", self.segments))

    @property
    def label(self) -> str:
        """A short name for tables and figures."""
        return f"{self.policy.label} for each {', '.join(self.segments)}"

    @property
    def in_python(self) -> bool:
        """Whether the policy is plain Python, and slow."""
        return cast(bool, self.policy.in_python)

    @property
    def interpreted(self) -> bool:
        """Whether the policy runs in a learner only."""
        return cast(bool, self.policy.interpreted)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(Ladder(), ["subject"]),)

    def check(self, table: ContextTable) -> None:
        check_columns(table.context, self.segments)

    def play(self, run: TableRun) -> None:
        table, row_at = run.table, run.row_at
        policy, rows = self.policy.at(table.arms), table.table(1).rows
        policy.register()  # also in a process that has not seen the policy
        loop, segments = table_loop(policy), table.segment_at(self.segments)[row_at]
        run.regret[:] = 0.0
        # The segments share nothing, so each is played to its end before the next begins.
        order = segments.argsort(kind="stable")
        for rounds in np.split(order, np.flatnonzero(np.diff(segments[order])) + 1):
            seen = np.searchsorted(rounds, run.checkpoints)  # its rounds up to each checkpoint
            ends = np.unique(seen[seen > 0])
            own = np.zeros(1 + len(ends))  # begins with 0, for checkpoints before its first round
            draws = draws_of(run.seed, run.number, int(segments[rounds[0]]))
            play_blind(policy, loop, rows, row_at[rounds], draws, run.best, ends, own[1:], run.plays)
            run.regret[:] += own[np.searchsorted(ends, seen, side="right")]


def field_names(argument: str, given: object, least: int = 1) -> tuple[str, ...]:
    """A tuple of at least `least` names."""
    names = tuple(given) if isinstance(given, list | tuple) else ()
    if (
        not isinstance(given, list | tuple)
        or len(names) < least
        or not all(isinstance(each, str) for each in names)
    ):
        rule = "must be a list of names of columns"
        raise ParameterError.of(argument, given, rule, 'such as ["subject"]')
    return names
