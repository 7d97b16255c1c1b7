"""The log judged offline: what each arm, what was served, and what another policy would have cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Bools, Floats
from ..base.validation import LEAST_RISK, loss_ends, number_in
from ..decision import Arm
from ..errors import Message, ParameterError
from .boundary import Interval, lower_difference, lower_mean
from .candidates import Candidate, Shares, shares_of
from .evaluated import Evaluated, Evaluation
from .log_columns import Log, LogLike, read_log
from .ordering import unsettled
from .ridge import Design, ridge

_Ends: TypeAlias = tuple[float, float]
_SURE = math.log(1e-6)
EMPTY = "is empty: no value agrees with the log, so some propensities or losses are wrong"
_OFF = 5.0  # standard errors by which the mean of an arm's weights may differ from 1


def evaluate(
    log: LogLike,
    policy: Candidate | None = None,
    *,
    loss_range: tuple[float, float] = (0.0, 1.0),
    risk: float = 0.05,
    drift: bool = True,
    arms: Sequence[Arm] | None = None,
    coupled: bool | None = None,
    tags: Mapping[str, str] | None = None,
    segments: str | Sequence[str] | None = None,
    least_propensity: float | None = None,
) -> Evaluation:
    """Estimate from a log the cost of every arm, of what was served, and of a candidate.

    All values are mean losses over the decisions of the log whose loss was observed and that could
    explore every arm. Each has three estimates: *importance weighting*, which is unbiased;
    *self-normalised*, which divides by the sum of the weights; and *doubly robust*, which weights
    only the difference from a model. The model is the mean of the arm's losses known so far; a
    ridge regression of these on the context, if the log has the column `context`; or the column
    `baseline`. All intervals are right together, with probability 1 - `risk`, for a log whose
    length you chose beforehand. They are so at every length of a growing log at once only if what
    its rows say never changes as it grows; docs/inference.md lists what that takes.

    Args:
        log: the path of a CSV or Parquet file, a data frame, columns by name, or a list of rows. It
            needs the columns `explore`, `propensity` and `loss`. `baseline` (a mapping, or its
            JSON) has the losses predicted for the arms when the decision was made: they are the
            model of the doubly robust estimate. `context` (a mapping of names to texts, numbers,
            booleans or None, or its JSON) has what was known of the request. With `judged`, the
            judge's loss, and `label_probability`, `decision.asked.rho`, a loss is a label, empty
            where none was asked for. All estimates are then of the labels, for any judge that
            judged every explored decision.
        policy: the candidate; None for none. An arm; a mapping from arms to shares; an array with a
            law over `arms` for each row of the log; a function that returns an arm or a law for the
            context of a row, or for its number if the log has no contexts; with `segments`, a
            mapping from segments to arms; or a policy, which is replayed: in each row, its law of
            exploitation given the losses known by then.
        loss_range: the lowest and highest possible loss.
        risk: the probability with which an interval may fail.
        drift: whether losses may drift. If no mean ever changes, False mostly narrows intervals,
            and needs no propensities.
        arms: the names of the arms in order; None for those that the log has, sorted.
        coupled: whether the arm exploited is the arm explored; None reads it from the log.
        tags: evaluate only the decisions that have all these tags; None for all decisions. If you
            look at many choices of tags, some intervals will be wrong by chance.
        segments: the fields of the context whose values (a tuple if there are several fields) are
            the keys of the mapping `policy`; None if `policy` is no such mapping.
        least_propensity: a probability, known beforehand, below which no arm was ever explored,
            such as the policy's uniform share divided by the number of arms. Intervals then use the
            doubly robust estimate, and are narrower where its model is good. None if you know none.

    >>> import decoupled as dc
    >>> rows = [
    ...     {"explore": "ab"[n % 2], "exploit": "a", "propensity": 0.5, "loss": 0.2 if n % 2 == 0 else 0.7}
    ...     for n in range(1_000)
    ... ]
    >>> result = dc.evaluate(rows, policy={"a": 0.5, "b": 0.5})
    >>> round(result.candidate.doubly_robust, 3), round(result.served.doubly_robust, 3)
    (0.45, 0.2)
    >>> result.candidate_minus_served.low > 0.0
    True

    A rule that looks at the context:

    >>> for n, row in enumerate(rows):
    ...     row["context"] = {"kind": "xy"[n // 2 % 2]}
    >>> dc.evaluate(rows, policy={"x": "a", "y": "b"}, segments="kind").candidate.importance_weighted
    0.45
    """
    low, high = loss_ends(loss_range)
    limit = number_in("risk", risk, LEAST_RISK, 1.0, "the default is 0.05")
    read = read_log(log, (low, high), arms, tags)
    beyond = 0.5 * (read.width - 1.0) * (high - low)
    ends = low - beyond, high + beyond

    def scaled(value: Evaluated) -> Evaluated:
        found = value.scaled(*ends)
        return replace(found, low=max(found.low, low), high=min(found.high, high))

    _refuse_blind(read, drift)
    least = _checked_least(least_propensity, read)
    name, shares = ("", None) if policy is None else shares_of(policy, read, segments)
    if shares is not None:
        _refuse_unexplored(read, shares)
    judge = _Judge(read, limit, drift, shares, least)
    values = tuple(judge.arm(place) for place in range(len(read.arms)))
    served = judge.served(_is_coupled(read) if coupled is None else coupled)
    candidate = None if shares is None else judge.candidate(name)
    apart = None if candidate is None else judge.candidate_minus_served(candidate, served)
    empty = [each for each in (*values, served, candidate) if each is not None and each.empty]
    return Evaluation(
        decisions=read.decisions,
        observed=len(read),
        left_out=read.left_out,
        risk=limit,
        drift=drift,
        arms=tuple(map(scaled, values)),
        served=None if served is None else scaled(served),
        candidate=None if candidate is None else scaled(candidate),
        candidate_minus_served=None if apart is None else apart.scaled(*ends, difference=True),
        remarks=tuple(judge.remarks() + [f"the interval of {each.name} {EMPTY}" for each in empty]),
    )


def _checked_least(least: Any, log: Log) -> float | None:
    if least is None:
        return None
    limit = number_in("least_propensity", least, 0.0, 1.0, "leave it out if you know of none")
    found = float(np.nanmin(log.propensity, initial=1.0))
    if limit > found:
        rule = f"must be at most {found:.4g}, which the log has"
        raise ParameterError.of(
            "least_propensity", least, rule, "give what holds for every decision"
        )
    return limit


def _refuse_blind(log: Log, drift: bool) -> None:
    unknown = int(np.isnan(log.propensity).sum())
    if len(log) == 0 and log.left_out > 0:
        problem = f"log: none of the {log.left_out} decisions with a loss could explore every arm; "
        problem += "their propensities are 1, or some arms were not available, so the log cannot compare the arms"
        remedy = "log decisions that explore at random, with the probability of the explored arm"
    elif len(log) == 0:
        found, remedy = "no loss", "evaluate it when feedback has come"
        if log.waiting:
            found = f"{log.waiting} losses, which wait for that of an earlier decision, one that is pending"
            remedy += ", or say that none will: give that decision the status 'unobserved'"
        problem = f"log: has {log.decisions} decisions and {found}"
    elif log.context is not None and not drift:
        why = "and these have contexts, on which losses and exploration may depend"
        problem = f"drift = False: assumes that an arm has one mean for all decisions, {why}"
        remedy = (
            "leave it out, or leave the column `context` out of the log if nothing depends on it"
        )
    elif unknown > 0 and drift:
        why = "so nobody knows how often their arms would have been explored"
        problem = f"log: {unknown} of {len(log)} observed decisions have no propensity, {why}"
        remedy = "log the probability of the explored arm, or pass drift=False if no mean loss ever changes"
    else:
        return
    raise ParameterError(Message(problem, remedy))


def _refuse_unexplored(log: Log, shares: Shares) -> None:
    for place, arm in enumerate(log.arms):
        if not np.any(log.explore == place) and np.max(shares(place)) > 0.0:
            problem = f"policy: would exploit {arm!r}, which the log never explored: its loss is not known"
            raise ParameterError(
                Message(problem, "choose a candidate without it, or explore it first")
            )


def _is_coupled(log: Log) -> bool:
    """Whether the arm exploited was always the arm explored, though that would be a miracle by
    chance.
    """
    same = bool(np.all(log.explore == log.exploit))
    return same and float(np.nansum(np.log(log.propensity))) < _SURE


class _Judge:
    """The estimates of one log, on losses in [0, 1]."""

    def __init__(
        self, log: Log, risk: float, drift: bool, shares: Shares | None, least: float | None
    ) -> None:
        self.log, self.drift, self.least = log, drift, least
        self.design = None if log.context is None else Design(log.context)
        # Shared by the arms, what was served, and the candidate with its difference; each has two
        # ends.
        self.risk = risk / (2 * (len(log.arms) + 1 + 2 * (shares is not None)))
        self.inverse = 1.0 / log.propensity
        self.lows, self.highs = self._plain_ends()
        # What a model of the losses says of the arm explored, of the arm exploited, and of the
        # candidate.
        self.explored, self.exploited, self.expected = (np.zeros(len(log)) for _ in range(3))
        self.candidate_weights, self.candidate_means = np.zeros(len(log)), np.zeros(len(log.arms))
        self.robust = [self._learn(place, shares) for place in range(len(log.arms))]

    def _learn(self, place: int, shares: Shares | None) -> float:
        """Add an arm to the columns, one at a time to save memory; return its doubly robust
        estimate.
        """
        log, model = self.log, self._model(place)
        mine, used = log.explore == place, log.exploit == place
        self.explored[mine], self.exploited[used] = model[mine], model[used]
        if shares is not None:
            share = np.broadcast_to(shares(place), len(log))
            self.candidate_weights[mine] = share[mine] * self.inverse[mine]
            self.expected += share * model
            self.candidate_means[place] = share.mean()
        rest = (log.loss[mine] - model[mine]) * self.inverse[mine]
        return float(model.mean() + rest.sum() / len(log))

    def _model(self, place: int) -> Floats:
        """For each decision, the loss that was predicted for an arm; without a prediction, the mean
        of the losses that were known of it before, and of one loss of 1/2, with what the context
        adds to it.
        """
        log = self.log
        mine = np.flatnonzero(log.explore == place)
        mine = mine[np.argsort(log.settled[mine], kind="stable")]
        known = np.searchsorted(log.settled[mine], log.made, side="left")
        sums = np.concatenate([[0.5], 0.5 + np.cumsum(log.loss[mine])])
        model: Floats = sums[known] / (known + 1.0)
        if self.design is not None:
            model = ridge(self.design, mine, log.loss[mine], log.settled[mine], log.made, model)
        if place in log.predicted:
            rows, values = log.predicted[place]
            model[rows] = values
        return model

    def _plain_ends(self) -> tuple[Floats, Floats]:
        """The ends of each arm's mean loss from the losses seen of it."""
        log, arms = self.log, len(self.log.arms)
        powers = np.ones(len(log)), log.loss, log.loss**2
        seen, loss, squares = (np.bincount(log.explore, each, arms) for each in powers)
        low = lower_mean(seen, loss, squares, self.risk)
        return low, 1.0 - lower_mean(seen, seen - loss, seen - 2.0 * loss + squares, self.risk)

    def arm(self, place: int) -> Evaluated:
        """The value of one arm; without estimates if it was never explored."""
        name, mine = str(self.log.arms[place]), self.log.explore == place
        if not mine.any():
            return Evaluated(name, 0, None, None, None, 0.0, 1.0)
        plain = None if self.drift else (float(self.lows[place]), float(self.highs[place]))
        return self._value(name, mine * self.inverse, slice(None), self.robust[place], plain)

    def served(self, coupled: bool) -> Evaluated | None:
        """The value of what was exploited; None if nothing was."""
        log, used = self.log, self.log.exploit >= 0
        if not used.any():
            return None
        weights = np.ones(len(log)) if coupled else (log.explore == log.exploit) * self.inverse
        model = self.explored if coupled else self.exploited
        self.used, self.served_weights, self.served_model = used, weights, model
        robust = float((model + weights * (log.loss - self.explored))[used].mean())
        plain = None
        if not self.drift:
            plain = self._mixed(
                np.bincount(log.exploit[used], minlength=len(log.arms)) / used.sum()
            )
        return self._value("what was served", weights[used], used, robust, plain)

    def candidate(self, name: str) -> Evaluated:
        """The value of the candidate."""
        weights = self.candidate_weights
        robust = float((self.expected + weights * (self.log.loss - self.explored)).mean())
        plain = None if self.drift else self._mixed(self.candidate_means)
        return self._value(name, weights, slice(None), robust, plain)

    def candidate_minus_served(
        self, candidate: Evaluated, served: Evaluated | None
    ) -> Interval | None:
        """The difference of both values; None if nothing was served."""
        if served is None or candidate.doubly_robust is None or served.doubly_robust is None:
            return None
        estimate = candidate.doubly_robust - served.doubly_robust
        if not self.drift:
            return Interval.around(
                estimate, candidate.low - served.high, candidate.high - served.low
            )
        used, risk = self.used, self._risk_of_each()
        mine, theirs = self.candidate_weights[used], self.served_weights[used]
        loss, model = self.log.loss[used], self.explored[used]
        low = _lower_difference(mine * loss + theirs * (1.0 - loss) - 1.0, risk)
        high = -_lower_difference(theirs * loss + mine * (1.0 - loss) - 1.0, risk)
        level = float((self.expected - self.served_model)[used].mean())
        ends = self._narrowed((low, high), level, (mine - theirs) * (loss - model))
        return Interval(estimate, *ends) if ends[0] > ends[1] else Interval.around(estimate, *ends)

    def _mixed(self, means: Floats) -> _Ends:
        """The ends of a mixture of arms, if no mean changes."""
        return float(means @ self.lows), float(means @ self.highs)

    def _value(
        self, name: str, weight: Floats, rows: Bools | slice, robust: float, ends: _Ends | None
    ) -> Evaluated:
        loss = self.log.loss[rows]
        weighted = weight * loss
        if ends is None:
            risk, rest = self._risk_of_each(), weight * (loss - self.explored[rows])
            ends = _lower_mean(weighted, risk), 1.0 - _lower_mean(weight - weighted, risk)
            ends = self._narrowed(ends, robust - float(rest.mean()), rest)
        known = not np.isnan(weighted).any()  # else some propensities are not
        return Evaluated(
            name,
            int(np.count_nonzero(weight)),
            float(weighted.mean()) if known else None,
            float(weighted.sum() / weight.sum()) if known and weight.any() else None,
            robust if known else None,
            *ends,
        )

    def _risk_of_each(self) -> float:
        """The risk of an end: one by importance weighting, or that and one by the doubly robust
        estimate.
        """
        return self.risk if self.least is None else 0.5 * self.risk

    def _narrowed(self, ends: _Ends, level: float, rest: Floats) -> _Ends:
        """The better of these ends and those by what a model leaves, whose mean is what the model's
        mean lacks.

        A weight is at most 1 / least, so what is left, times least, lies in [-1, 1].
        """
        if self.least is None:
            return ends
        risk, scaled = self._risk_of_each(), self.least * rest
        low = level + _lower_difference(scaled, risk) / self.least
        high = level - _lower_difference(-scaled, risk) / self.least
        return max(ends[0], low), min(ends[1], high)

    def remarks(self) -> list[str]:
        """What a reader should know about the log."""
        log, notes = self.log, []
        if log.left_out > 0:
            what = f"{log.left_out:,} observed decisions"
            notes.append(f"{what} could not explore every arm and are left out")
        if (lost := unsettled(log.missing, log.waiting)) is not None:
            notes.append(lost)
        for place, arm in enumerate(log.arms):
            if not np.any(log.explore == place):
                notes.append(f"{arm!r} was never explored, so nothing can be told about it")
            elif (wrong := wrong_propensities(log, place)) is not None:
                notes.append(wrong)
        if self.design is not None and (unused := self.design.unused) > 0:
            notes.append(f"the model uses the fields that most contexts have, without {unused:,}")
        return notes


def wrong_propensities(log: Log, place: int) -> str | None:
    """A remark if the propensities of an arm cannot be right, because its weights do not average 1;
    otherwise None.

    >>> from decoupled.inference import read_log
    >>> rows = [{"explore": "a" if n % 2 else "b", "propensity": 0.9, "loss": 0.5} for n in range(100)]
    >>> wrong_propensities(read_log(rows, (0, 1)), 0)[:40]
    "the weights of 'a' average 0.56 instead "
    """
    weights = (log.explore == place) / log.propensity
    error = float(weights.std()) / math.sqrt(len(log))
    if not np.isfinite(error) or abs(weights.mean() - 1.0) <= _OFF * error:
        return None
    average = f"the weights of {log.arms[place]!r} average {weights.mean():.2f} instead of 1"
    return f"{average}: its propensities are wrong, or it was not there all the time"


def _lower_mean(values: Floats, risk: float) -> float:
    return float(lower_mean(len(values), values.sum(), (values**2).sum(), risk))


def _lower_difference(values: Floats, risk: float) -> float:
    return float(lower_difference(len(values), values.sum(), (values**2).sum(), risk))
