"""Is it decided? What the confidence sequences say about which arm is best, as a sentence."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.validation import LEAST_RISK, check_number
from ..decision import Arm
from ..errors import ArmError, Message
from ..kernels.betting import COMPARED, SEEN, USED
from . import comparisons
from .boundary import Interval
from .comparisons import Basis
from .ordering import Awaited, describe_gaps
from .sequences import Sequences
from .sums import Sums

State: TypeAlias = Literal["decided", "narrowed", "open"]
"""How far a verdict has come; see `Verdict`."""

_MOST_NAMED = 3  # arms that a sentence names
_LONGEST_WAIT = 10**9  # observations; a longer wait is no plan
_FEWEST_OBSERVED = 30  # from fewer, a forecast would be noise


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about the best arm, valid whenever you look.

    An arm is out once it is shown to be worse than the arms that led, or than another one, and
    stays out until arms are added or retired. With probability 1 - risk, every arm that is out was
    worse at the moment at which this was shown: by its mean loss, if no mean ever changes; if
    losses may drift, by the mean difference until then to some arm, over the rounds in which that
    arm led, or over all, weighted by the chance of the rarer arm divided by a level of losses, and
    times the chance of a label with `Labels`. A verdict says nothing about losses after that
    moment.

    If feedback goes missing more often for one arm, the verdict waits, and its text says so.

    Attributes:
        text: the verdict as a sentence.
        state: "decided" if one arm was shown to be better than every other, "narrowed" if some arms
            are out, "open" if none is. If losses may drift, each other arm must be worse than that
            arm itself, all by the same rounds. So it may stay narrowed although one arm is left:
            others may be out because a third arm was better.
        best: the arm that looks best among those left, by the evidence that compares them; None if
            no loss was seen.
        left: the arms that may still be the best; none if arms took turns and all are out.
        out: the arms that were shown to be worse than another.
        sure: the highest level at which the evidence of now shows the same, which may be below 1 -
            risk; None while open.
        more_observations: about how many more it takes to decide, if the arms differ as much as
            they seem to and are explored as often as so far; None if it is decided, not
            foreseeable, or before 30 observations.
        basis: what the arms were compared by. "paired": the difference of two arms, over rounds
            weighted by the chance of the rarer arm divided by a level of losses; "running": the
            same, but all rounds count the same, because the chances are not known in any round or
            depend on the request; "stationary": bets against the arm that leads, tested together,
            or the losses seen of each arm if the chances are not known, if no mean changes.
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
    'large is better than small (95 %, decided at round 25)'
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
    too early: there is no loss to judge by yet
    """
    arm_names = range(sequences.count) if names is None else names
    if len(arm_names) != sequences.count:
        rule = f"names: has {len(arm_names)} names for {sequences.count} arms"
        raise ArmError(Message(rule, "name every arm, also retired ones"))
    comparison = compare(sequences, risk, drift=drift)
    place = _best_place(sequences.sums, comparison)
    out = tuple(arm_names[arm] for arm in comparison.live[comparison.is_out].tolist())
    sure = None
    if out:
        sure = 1.0 - min(float(comparison.risks[comparison.is_out].max()), 1.0)
    decided_at = comparison.shown_at or None
    judgement = Verdict(
        text="",
        state=_state_of(comparison),
        best=None if sequences.observed == 0 else arm_names[int(comparison.live[place])],
        left=tuple(arm_names[arm] for arm in comparison.live[~comparison.is_out].tolist()),
        out=out,
        sure=sure,
        more_observations=_more_observations(sequences, comparison, place),
        basis=comparison.basis,
        decided_at=decided_at,
        left_out=sequences.left_out,
        waiting=waiting,
        remark=describe_gaps(sequences.left_out, waiting, awaited),
        observed=sequences.observed,
        waiting_for=None if awaited is None else awaited.decision,
        waiting_decisions=None if awaited is None else awaited.decisions,
        waiting_until=None if awaited is None else awaited.until,
        is_provisional=_is_provisional(sequences, decided_at),
    )
    if judgement.is_provisional and sequences.missing.is_uneven:
        return _withheld(judgement, sequences, arm_names)
    level = _level_text(sure, comparison)
    return replace(judgement, text=_sentence(judgement, level, awaited) + _reservation(judgement))


def _withheld(judgement: Verdict, sequences: Sequences, names: Sequence[Arm]) -> Verdict:
    """The verdict where feedback goes missing more often for one arm: it waits, and says why."""
    arm = sequences.missing.most
    counts = np.zeros(sequences.count)
    counts[: len(sequences.missing.counts)] = sequences.missing.counts
    others = np.arange(sequences.count) != arm
    seen = sequences.sums.counts[:, SEEN]
    own_share = counts[arm] / max(counts[arm] + seen[arm], 1.0)
    other_share = counts[others].sum() / max((counts + seen)[others].sum(), 1.0)
    text = (
        f"withheld: feedback of {_text_of(names[arm])} is missing in {100.0 * own_share:.2g} % of "
        f"its decisions, and in {100.0 * other_share:.2g} % of the others'; the losses seen are no "
        "fair sample, so declare an expired_loss or find out why"
    )
    return replace(
        judgement,
        text=text,
        state="open",
        left=(*judgement.left, *judgement.out),
        out=(),
        sure=None,
        more_observations=None,
        decided_at=None,
    )


def _best_place(sums: Sums, comparison: "Comparison") -> int:
    """The place, among the arms that are not retired, of the one that looks best of those left."""
    left_places = np.flatnonzero(~comparison.is_out)
    if len(left_places) == 0:
        left_places = np.arange(len(comparison.live))
    left = comparison.live[left_places]
    return int(left_places[comparisons.leader(sums, left, comparison.basis)])


def _state_of(comparison: "Comparison") -> State:
    if comparison.decided is not None:
        return "decided"
    return "narrowed" if comparison.is_out.any() else "open"


def _more_observations(sequences: Sequences, comparison: "Comparison", place: int) -> int | None:
    """About how many more observations it takes until the arm at this place is shown to be the
    best; None if it is decided or cannot be foreseen.
    """
    if sequences.observed == 0 or comparison.decided is not None or comparison.is_out.all():
        return None
    is_rival = np.arange(len(comparison.live)) != place
    if comparison.basis == "stationary":
        is_rival &= ~comparison.is_out
    factor = comparisons.growth_until_shown(
        sequences.sums,
        comparison.live[is_rival],
        int(comparison.live[place]),
        comparison.risk,
        comparison.basis,
    )
    return _rounded_wait(sequences.observed, factor)


def _level_text(sure: float | None, comparison: "Comparison") -> str:
    """The level of a verdict in words, and since when it holds; empty while nothing is shown."""
    if sure is None:
        return ""
    if comparison.shown_at is None:
        return f"{math.floor(1000 * min(sure, 0.9999)) / 10} % now"
    level = f"{100.0 * (1.0 - comparison.risk):.6g} %"
    if comparison.shown_at == 0:
        return level
    return f"{level}, decided at round {comparison.shown_at:,}"


def _is_provisional(sequences: Sequences, decided_at: int | None) -> bool:
    """Whether decisions were left out before the last arm that is out was shown to be worse."""
    complete = sequences.complete
    if sequences.left_out == 0:
        return False
    return decided_at is None or complete is None or decided_at > complete


def _reservation(judgement: Verdict) -> str:
    """What a sentence adds if it is provisional."""
    if not judgement.is_provisional:
        return ""
    count = judgement.left_out
    what = "decision without a loss is" if count == 1 else "decisions without a loss are"
    return f"; provisional: {count:,} {what} left out"


def _rounded_wait(observed: int, factor: float) -> int | None:
    """How many more observations make so many times those so far; None if nobody can tell."""
    if observed < _FEWEST_OBSERVED or not math.isfinite(factor):
        return None
    if observed * factor > _LONGEST_WAIT:
        return None
    more = observed * (factor - 1.0)
    step = 10 ** max(math.floor(math.log10(max(more, 1.0))) - 1, 0)  # two digits: it is a guess
    return max(int(math.ceil(more / step) * step), 1)


def _sentence(judgement: Verdict, level: str, awaited: Awaited | None) -> str:
    """A verdict as a sentence. `level` is empty while nothing is shown."""
    out = judgement.out
    wait = ""
    if judgement.more_observations is not None:
        wait = f"about {judgement.more_observations:,} more observations at this rate"
    if judgement.best is None:
        reason = describe_gaps(0, judgement.waiting, awaited) or "there is no loss to judge by yet"
        return f"too early: {reason}"
    if not level:
        if wait:
            return f"too early: {wait}"
        return "too early to tell how many more observations it takes"
    if judgement.state == "decided":
        others = _text_of(out[0]) if len(out) == 1 else "every other arm"
        return f"{_text_of(judgement.best)} is better than {others} ({level})"
    if not judgement.left:
        return f"every arm is out, each worse than a leader of its time: they take turns ({level})"
    left = _joined(judgement.left, "or")
    if len(judgement.left) == 1:
        left = f"{left} is left, but not shown to be better than each other arm"
    verb = "is" if len(out) == 1 else "are"
    sentence = f"{left}; {_joined(out, 'and')} {verb} out ({level})"
    return f"{sentence}; {wait} to decide" if wait else sentence


def _joined(arms: tuple[Arm, ...], word: str) -> str:
    """Arms as a list in a sentence: "a, b or c", or how many there are."""
    if len(arms) > _MOST_NAMED:
        return f"{len(arms)} arms"
    *first, last = (_text_of(arm) for arm in arms)
    return f"{', '.join(first)} {word} {last}" if first else last


def _text_of(arm: Arm) -> str:
    return f"arm {arm}" if isinstance(arm, int) else arm


@dataclass(frozen=True)
class Comparison:
    """The arms that are not retired, each with the smallest risk at which it is shown to be worse
    than another.

    Attributes:
        live: the numbers of the arms that are not retired.
        risks: that risk, for each of them.
        is_out: which of them were shown to be worse, at the risk allowed.
        basis: what they are compared by.
        risk: the risk allowed.
        shown_at: the number of observations after which the last of these was shown to be worse, 0
            if there is none or it is not known; None if they are shown to be by the evidence of
            now. If an arm is decided, it is when that was shown.
        decided: the arm that is shown to be better than every other one; None if none is.
    """

    live: Ints
    risks: Floats
    is_out: Bools
    basis: Basis
    risk: float
    shown_at: int | None = None
    decided: int | None = None


def compare(
    sequences: Sequences, risk: float | None = None, *, drift: bool | None = None
) -> Comparison:
    """Compare all arms; see `verdict` for the arguments."""
    sums = sequences.sums
    limit = sums.risk
    if risk is not None:
        limit = check_number("risk", risk, "the default is 0.05", above=LEAST_RISK, below=1.0)
    allows_drift = sums.drift if drift is None else bool(drift)
    if (limit, allows_drift) == (sums.risk, sums.drift):
        return _compare_as_settled(sums)
    return _compare_now(sums, limit, drift=allows_drift)


def _compare_as_settled(sums: Sums) -> Comparison:
    """Compare all arms by what was ever shown.

    An arm that was out stays out, also if the evidence has become less since.
    """
    basis = comparisons.basis_of(sums, drift=sums.drift)
    live = np.array(sums.live, np.int64)
    if basis == "stationary":
        risks = comparisons.risks_now(sums, live, basis)
    else:
        risks = comparisons.risks_as_settled(sums, live)
    out_since = sums.out_since
    is_out = np.isin(live, list(out_since))
    shown_at = 0 if 0 in out_since.values() else max(out_since.values(), default=0)
    decided = sums.decided
    if decided is not None and sums.best is not None:
        shown_at = sums.best.at
        is_out = live != decided
        risks = _own_risks(sums, live, decided, basis)
    return Comparison(
        live=live,
        risks=risks,
        is_out=is_out,
        basis=basis,
        risk=sums.risk,
        shown_at=shown_at,
        decided=decided,
    )


def _compare_now(sums: Sums, risk: float, *, drift: bool) -> Comparison:
    """Compare all arms by the evidence of now alone."""
    basis = comparisons.basis_of(sums, drift=drift)
    live = np.array(sums.live, np.int64)
    risks = comparisons.risks_now(sums, live, basis)
    is_out = risks <= risk
    decided = None
    for candidate in _candidates(sums, live, is_out, basis):
        own_risks = risks
        if basis != "stationary":
            own_risks = _own_risks(sums, live, candidate, basis)
        if (own_risks[live != candidate] <= risk).all():
            risks = own_risks
            decided = candidate
            is_out = live != candidate
    return Comparison(
        live=live, risks=risks, is_out=is_out, basis=basis, risk=risk, decided=decided
    )


def _candidates(sums: Sums, live: Ints, is_out: Bools, basis: Basis) -> list[int]:
    """The arm that may be shown now to be better than every other one, if there is any."""
    left: list[int] = live[~is_out].tolist()
    if len(left) == 1:
        return left
    if basis == "stationary":
        return []
    return [int(live[comparisons.leader(sums, live, basis)])]


def _own_risks(sums: Sums, live: Ints, best: int, basis: Basis) -> Floats:
    """For each arm, the smallest risk at which it is shown now to be worse than the best one."""
    risks = np.ones(len(live))
    is_other = live != best
    risks[is_other] = comparisons.own_risks(sums, live[is_other], best, basis)
    return risks


def is_beaten(sequences: Sequences, arm: int, risk: float, *, drift: bool) -> bool:
    """Whether it is shown, at this risk, that another arm is better than this one, which was chosen
    beforehand.
    """
    if sequences.missing.is_uneven:
        return False
    sums = sequences.sums
    basis = comparisons.basis_of(sums, drift=drift)
    return comparisons.risk_of_arm(sums, arm, basis) <= risk


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
    allows_drift = sequences.drift if drift is None else bool(drift)
    basis = comparisons.basis_of(sums, drift=allows_drift)
    return int(live[comparisons.leader(sums, live, basis)])


def compared_rounds(sequences: Sequences, *, drift: bool | None = None) -> int:
    """The number of rounds that `regret` is over.

    >>> sequences = Sequences(arms=2)
    >>> for n in range(10):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.5, exploit=0)
    >>> compared_rounds(sequences)
    10
    """
    sums = sequences.sums
    allows_drift = sequences.drift if drift is None else bool(drift)
    return int(sums.rounds[COMPARED] if allows_drift else sums.counts[:, USED].sum())


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
    ...     loss = 0.25 if n % 2 else 0.75
    ...     sequences.update(explore=n % 2, weight=2.0, loss=loss, exploit=n // 2 % 2)
    >>> [round(end) for end in regret(sequences)]
    [500, 485, 508]
    """
    arm = best_looking(sequences, drift=drift) if against is None else against
    rounds = compared_rounds(sequences, drift=drift)
    if arm is None or rounds == 0:
        return None
    estimate, low, high = sequences.against_served(arm, drift=drift)
    return Interval(-estimate, -high, -low).scaled(0.0, float(rounds))
