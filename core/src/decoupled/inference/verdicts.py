"""Is it decided? What the confidence sequences say about which arm is best, as a sentence."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.validation import LEAST_RISK, number_in
from ..decision import Arm
from ..errors import ArmError, Message
from ..kernels.betting import COMPARED, USED
from . import comparisons
from .boundary import Interval
from .comparisons import Basis, basis_of, leader
from .ordering import Awaited, unsettled
from .sequences import Sequences
from .sums import Sums

State: TypeAlias = Literal["decided", "narrowed", "open"]
"""How far a verdict has come; see `Verdict`."""

_NAMED = 3  # arms that a sentence names
_MOST = 10**9  # observations; a longer wait is no plan
_LEAST = 30  # observations; from fewer, a forecast would be noise


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about the best arm, valid whenever you look.

    An arm is out once it is shown to be worse than another one, and stays out until arms are added
    or retired. With probability 1 - risk, every arm that is out was worse at the moment at which
    this was shown: by its mean loss, if no mean ever changes; if losses may drift, by the mean
    difference until then, over rounds weighted by the chance to explore both arms, times the chance
    of a label with `Labels`. A verdict says nothing about losses after that moment.

    Attributes:
        text: the verdict as a sentence.
        state: "decided" if one arm was shown to be better than every other, "narrowed" if some arms
            are out, "open" if none is. If losses may drift, each other arm must be worse than that
            arm itself, all by the same rounds. So it may stay narrowed although one arm is left:
            others may be out because a third arm was better.
        best: the arm that looks best among those left, by the evidence that compares them; None if
            no loss was seen.
        left: the arms that may still be the best.
        out: the arms that were shown to be worse than another.
        sure: the highest level at which the evidence of now shows the same, which may be below 1 -
            risk; None while open.
        more_observations: about how many more it takes to decide, if the arms differ as much as
            they seem to and are explored as often as so far; None if it is decided, not
            foreseeable, or before 30 observations.
        basis: what the arms were compared by. "paired": the difference of two arms, over rounds
            weighted by the chance to explore both; "running": the same, but all rounds count the
            same, because that chance is not known in any round or depends on the request;
            "stationary": the losses seen of each arm, if no mean changes.
        decided_at: after how many observations it was decided, or the last arm that is out was
            shown to be worse; None while it is open, with another risk than that of the sequences,
            and if an earlier version did not note it.
        left_out: how many decisions are left out because their loss did not arrive in time.
        waiting: how many losses wait for those of earlier decisions.
        observed: how many losses the verdict rests on: those of all decisions before the one that
            is waited for.
        waiting_for: the id of the decision that they wait for; None if none waits.
        waiting_decisions: after how many more decisions that one is given up; None if none waits.
        waiting_until: the time at which it is given up if that comes first; None if only decisions
            count.
        is_provisional: whether it rests on leaving decisions out whose loss did not come in time.
            It is then biased if a loss that is late differs from the others; declare an
            `expired_loss` to do without that assumption.
        remark: what is assumed about decisions that are left out, and what the losses wait for;
            None if there are none.
        judge: with labels, what the judge alone would say; None without.
        warning: a sentence if the judge alone would decide for another arm than the labels do;
            otherwise None.

    >>> from decoupled.inference import Sequences, verdict
    >>> sequences = Sequences(arms=2)
    >>> for n in range(200):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75)
    >>> verdict(sequences, ["small", "large"]).text
    'large is better than small (95 %, decided at round 21)'
    """

    text: str
    state: State
    best: Arm | None
    left: tuple[Arm, ...]
    out: tuple[Arm, ...]
    sure: float | None
    more_observations: int | None
    basis: Basis
    decided_at: int | None = None
    left_out: int = 0
    waiting: int = 0
    observed: int = 0
    waiting_for: str | None = None
    waiting_decisions: int | None = None
    waiting_until: str | None = None
    is_provisional: bool = False
    remark: str | None = None
    judge: str | None = None
    warning: str | None = None

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values, for JSON."""
        return {**asdict(self), "left": list(self.left), "out": list(self.out)}


def verdict(
    sequences: Sequences,
    names: Sequence[Arm] | None = None,
    *,
    risk: float | None = None,
    drift: bool | None = None,
    waiting: int = 0,
    awaited: Awaited | None = None,
) -> Verdict:
    """Judge the arms that are not retired.

    An arm is out when the sequences show that it is worse than another; `Verdict` says what that
    means.

    Args:
        sequences: the sequences.
        names: the name of each arm, also of retired ones; by default its number.
        risk: a risk other than that of the sequences. Choose it before you look. An arm is then out
            if shown to be worse now.
        drift: whether losses may drift; by default as the sequences say. Choose it before you look,
            too.
        waiting: how many losses are not in the sequences yet, because they wait for those of
            earlier decisions.
        awaited: the decision that they wait for; None if it is not known.

    >>> from decoupled.inference import Sequences, verdict
    >>> print(verdict(Sequences(arms=2)))
    too early: nothing was observed
    """
    sums = sequences.sums
    names = range(sequences.count) if names is None else names
    if len(names) != sequences.count:
        rule = f"names: has {len(names)} names for {sequences.count} arms"
        raise ArmError(Message(rule, "name every arm, also retired ones"))
    live, chances, gone, basis, limit, at, decided = compared(sequences, risk, drift)
    left_rows = np.flatnonzero(~gone)
    first = int(left_rows[comparisons.leader(sums, live[left_rows], basis)])
    state: State = "narrowed" if gone.any() else "open"
    if decided is not None:
        state = "decided"
    best = None if sequences.observed == 0 else names[int(live[first])]
    left, out = (tuple(names[arm] for arm in live[rows].tolist()) for rows in (~gone, gone))
    sure = 1.0 - min(float(chances[gone].max()), 1.0) if out else None
    rivals = live[live != live[first]]
    if basis == "stationary":
        rivals = live[left_rows[left_rows != first]]
    more = None
    if best is not None and decided is None:
        more = _more(
            sequences.observed, comparisons.times(sums, rivals, int(live[first]), limit, basis)
        )
    level = ""
    if sure is not None and at is None:
        level = f"{math.floor(1000 * min(sure, 0.9999)) / 10} % now"
    elif sure is not None:
        level = f"{100.0 * (1.0 - limit):.6g} %" + (f", decided at round {at:,}" if at else "")
    lost = sequences.left_out
    decided_at = at or None
    found = Verdict(
        text="",
        state=state,
        best=best,
        left=left,
        out=out,
        sure=sure,
        more_observations=more,
        basis=basis,
        decided_at=decided_at,
        left_out=lost,
        waiting=waiting,
        remark=unsettled(lost, waiting, awaited),
        observed=sequences.observed,
        waiting_for=None if awaited is None else awaited.decision,
        waiting_decisions=None if awaited is None else awaited.decisions,
        waiting_until=None if awaited is None else awaited.until,
        is_provisional=_is_provisional(sequences, decided_at),
    )
    return replace(found, text=_sentence(found, level, awaited) + _reservation(found))


def _is_provisional(sequences: Sequences, decided_at: int | None) -> bool:
    """Whether decisions were left out before the last arm that is out was shown to be worse."""
    complete = sequences.complete
    if sequences.left_out == 0:
        return False
    return decided_at is None or complete is None or decided_at > complete


def _reservation(found: Verdict) -> str:
    """What a sentence adds if it is provisional."""
    if not found.is_provisional:
        return ""
    what = "decision without a loss is" if found.left_out == 1 else "decisions without a loss are"
    return f"; provisional: {found.left_out:,} {what} left out"


def _more(observed: int, times: float) -> int | None:
    """How many more observations make so many times those so far."""
    if observed < _LEAST or not math.isfinite(times) or observed * times > _MOST:
        return None
    more = observed * (times - 1.0)
    step = 10 ** max(math.floor(math.log10(max(more, 1.0))) - 1, 0)  # two digits: it is a guess
    return max(int(math.ceil(more / step) * step), 1)


def _sentence(found: Verdict, level: str, awaited: Awaited | None) -> str:
    more, out = found.more_observations, found.out
    wait = "" if more is None else f"about {more:,} more observations at this rate"
    if found.best is None:
        return "too early: " + (unsettled(0, found.waiting, awaited) or "nothing was observed")
    if not level:
        return (
            f"too early: {wait}"
            if wait
            else "too early to tell how many more observations it takes"
        )
    if found.state == "decided":
        return f"{_spoken(found.best)} is better than {_spoken(out[0]) if len(out) == 1 else 'every other arm'} ({level})"
    lost = f"{_named(out, 'and')} {'is' if len(out) == 1 else 'are'} out ({level})"
    left = _named(found.left, "or")
    if len(found.left) == 1:
        left = f"{left} is left, but not shown to be better than each other arm"
    return f"{left}; {lost}" + (f"; {wait} to decide" if wait else "")


def _named(arms: tuple[Arm, ...], word: str) -> str:
    if len(arms) > _NAMED:
        return f"{len(arms)} arms"
    *first, last = (_spoken(arm) for arm in arms)
    return f"{', '.join(first)} {word} {last}" if first else last


def _spoken(arm: Arm) -> str:
    return f"arm {arm}" if isinstance(arm, int) else arm


class Comparison(NamedTuple):
    """The arms that are not retired, each with the smallest risk at which it is shown to be worse
    than another.

    `gone` marks those that were shown to be, at the risk allowed. `at` is the number of
    observations after which the last of these was, 0 if there is none or it is not known; None if
    they are shown to be by the evidence of now. `decided` is the arm that is shown to be better
    than every other one, and then `at` is when that was shown.
    """

    live: Ints
    chances: Floats
    gone: Bools
    basis: Basis
    risk: float
    at: int | None = None
    decided: int | None = None


def compared(
    sequences: Sequences, risk: float | None = None, drift: bool | None = None
) -> Comparison:
    """Compare all arms; see `verdict` for the arguments."""
    sums = sequences.sums
    limit = (
        sums.risk
        if risk is None
        else number_in("risk", risk, LEAST_RISK, 1.0, "the default is 0.05")
    )
    allows = sums.drift if drift is None else bool(drift)
    basis = comparisons.basis_of(sums, allows)
    live = np.array(sums.live, np.int64)
    chances = comparisons.chances(sums, live, basis)
    if (limit, allows) == (sums.risk, sums.drift):
        # An arm that was out stays out, also if the evidence has become less since.
        first: dict[int, int] = {}
        for (worse, _), shown in sums.settled.items():
            first[worse] = min(first.get(worse, shown.at), shown.at)
        at = 0 if 0 in first.values() else max(first.values(), default=0)
        best = sums.decided
        if best is not None and sums.best is not None:
            at = sums.best.at
            chances = _own_chances(sums, live, best, basis)
        return Comparison(live, chances, np.isin(live, list(first)), basis, limit, at, best)
    gone = chances <= limit
    if (
        gone.all()
    ):  # each is worse than another in the rounds that compare these two: they take turns
        gone[:] = False
    left = live[~gone].tolist()
    if len(left) > 1:
        return Comparison(live, chances, gone, basis, limit)
    own = chances
    if basis != "stationary":
        own = _own_chances(sums, live, left[0], basis)
    if (own[gone] <= limit).all():
        return Comparison(live, own, gone, basis, limit, decided=left[0])
    return Comparison(live, chances, gone, basis, limit)


def _own_chances(sums: Sums, live: Ints, best: int, basis: Basis) -> Floats:
    """For each arm, the smallest risk at which it is shown now to be worse than the best one."""
    found = np.ones(len(live))
    others = live != best
    found[others] = comparisons.own_risks(sums, live[others], best, basis)
    return found


def is_beaten(sequences: Sequences, arm: int, risk: float, drift: bool) -> bool:
    """Whether it is shown, at this risk, that another arm is better than this one, which was chosen
    beforehand.
    """
    sums = sequences.sums
    return comparisons.chance_of(sums, arm, comparisons.basis_of(sums, drift)) <= risk


def best_looking(sequences: Sequences, *, drift: bool | None = None) -> int | None:
    """The best arm so far by the evidence that compares arms, among those not retired; None if no
    loss was seen.

    >>> from decoupled.inference.verdicts import best_looking
    >>> sequences = Sequences(arms=2)
    >>> sequences.update(explore=1, weight=2.0, loss=0.25)
    >>> best_looking(sequences)
    1
    """
    if sequences.observed == 0:
        return None
    sums = sequences.sums
    live = np.array(sums.live, np.int64)
    return int(
        live[leader(sums, live, basis_of(sums, sequences.drift if drift is None else bool(drift)))]
    )


def compared_rounds(sequences: Sequences, *, drift: bool | None = None) -> int:
    """The number of rounds that `regret` is over.

    >>> sequences = Sequences(arms=2)
    >>> for n in range(10):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.5, exploit=0)
    >>> compared_rounds(sequences)
    10
    """
    allows, sums = sequences.drift if drift is None else bool(drift), sequences.sums
    return int(sums.rounds[COMPARED] if allows else sums.counts[:, USED].sum())


def regret(
    sequences: Sequences, against: int | None = None, *, drift: bool | None = None
) -> Interval | None:
    """How much more was lost in all than by always exploiting one arm, with its interval.

    The intervals for all arms are right together, so you may choose the arm after you have looked.

    Args:
        sequences: the sequences.
        against: the arm; by default the one that looks best now.
        drift: as in `Sequences`. If losses may drift, the regret is over the rounds that could
            explore every arm there is now; if not, over all observed rounds that exploited an arm.
            None if there was no such round.

    >>> from decoupled.inference import Sequences, regret
    >>> sequences = Sequences(arms=2)
    >>> for n in range(2_000):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75, exploit=n // 2 % 2)
    >>> [round(each) for each in regret(sequences)]
    [500, 435, 565]
    """
    arm = best_looking(sequences, drift=drift) if against is None else against
    rounds = compared_rounds(sequences, drift=drift)
    if arm is None or rounds == 0:
        return None
    less, low, high = sequences.against_served(arm, drift=drift)
    return Interval(-less, -high, -low).scaled(0.0, float(rounds))
