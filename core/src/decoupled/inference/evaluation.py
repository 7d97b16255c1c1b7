"""The log judged offline: what each arm, what was served, and another policy would have cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Bools, Floats
from ..base.validation import LEAST_RISK, check_number, loss_ends
from ..decision import Arm
from ..errors import Message, ParameterError
from .boundary import Interval
from .candidates import Candidate, Shares, shares_of
from .evaluated import Evaluated, Evaluation
from .log_columns import Log, LogLike, read_log
from .ordering import describe_gaps
from .questions import ArmSeen, Question
from .ridge import Design, ridge
from .singles import Singles

_Ends: TypeAlias = tuple[float, float]
# If the arm explored was always the arm exploited, and the logarithm of the chance of that is below
# this, the game is the standard one.
_LEAST_LOG_CHANCE = math.log(1e-6)
EMPTY = "is empty: no value agrees with the log, so some propensities or losses are wrong"
# Standard errors by which the mean of an arm's weights may differ from 1.
_MOST_ERRORS = 5.0


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
            model of the doubly robust estimate. `law` (a mapping, or its JSON) has the probability
            with which each arm was explored: with it, and `drift=True`, intervals are narrower by
            much, since only the difference from the model is weighted. `context` (a mapping of
            names to texts, numbers, booleans or None, or its JSON) has what was known of the
            request. With `judged`, the judge's loss, and `label_probability`,
            `decision.label_request.rho`, a loss is a label, empty where none was asked for. All
            estimates are then of the labels, for any judge that judged every explored decision.
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
    ...     {"explore": arm, "exploit": "a", "propensity": 0.5, "loss": 0.2 if arm == "a" else 0.7}
    ...     for arm in 500 * ["a", "b"]
    ... ]
    >>> result = dc.evaluate(rows, policy={"a": 0.5, "b": 0.5})
    >>> round(result.candidate.doubly_robust, 3), round(result.served.doubly_robust, 3)
    (0.45, 0.2)
    >>> result.candidate_minus_served.low > 0.0
    True

    A rule that looks at the context:

    >>> for n, row in enumerate(rows):
    ...     row["context"] = {"kind": "xy"[n // 2 % 2]}
    >>> result = dc.evaluate(rows, policy={"x": "a", "y": "b"}, segments="kind")
    >>> result.candidate.importance_weighted
    0.45
    """
    loss_low, loss_high = loss_ends(loss_range)
    limit = check_number("risk", risk, "the default is 0.05", above=LEAST_RISK, below=1.0)
    columns = read_log(log, (loss_low, loss_high), arms, tags)
    _refuse_uninformative(columns, drift=drift)
    least = _checked_least(least_propensity, columns)
    name = ""
    shares = None
    if policy is not None:
        name, shares = shares_of(policy, columns, segments)
        _refuse_unexplored(columns, shares)
    if coupled is None:
        coupled = _is_coupled(columns)
    estimates = _Estimates(columns, limit, shares, least, drift=drift, is_coupled=coupled)
    values = [estimates.arm(place) for place in range(len(columns.arms))]
    served_columns = estimates.served_columns()
    served = None if served_columns is None else estimates.served(served_columns)
    candidate = None if shares is None else estimates.candidate(name)
    difference = None
    if candidate is not None and served is not None and served_columns is not None:
        difference = estimates.candidate_minus_served(candidate, served, served_columns)
    remarks = estimates.remarks()
    for value in (*values, served, candidate):
        if value is not None and value.empty:
            remarks.append(f"the interval of {value.name} {EMPTY}")

    # With labels, losses are mapped to [0, 1] from a wider range than `loss_range`.
    beyond = 0.5 * (columns.width - 1.0) * (loss_high - loss_low)
    ends = (loss_low - beyond, loss_high + beyond)

    def scaled(value: Evaluated) -> Evaluated:
        in_units = value.scaled(*ends)
        return replace(
            in_units, low=max(in_units.low, loss_low), high=min(in_units.high, loss_high)
        )

    return Evaluation(
        decisions=columns.decisions,
        observed=len(columns),
        left_out=columns.left_out,
        risk=limit,
        drift=drift,
        arms=tuple(map(scaled, values)),
        served=None if served is None else scaled(served),
        candidate=None if candidate is None else scaled(candidate),
        candidate_minus_served=(
            None if difference is None else difference.scaled(*ends, difference=True)
        ),
        remarks=tuple(remarks),
    )


def _checked_least(least: Any, log: Log) -> float | None:
    """The smallest propensity that the caller promises; an error if the log has a smaller one."""
    if least is None:
        return None
    name = "least_propensity"
    limit = check_number(name, least, "leave it out if you know of none", above=0.0, below=1.0)
    smallest = float(np.nanmin(log.propensity, initial=1.0))
    if limit > smallest:
        rule = f"must be at most {smallest:.4g}, which the log has"
        remedy = "give what holds for every decision"
        raise ParameterError.of(name, least, rule, remedy)
    return limit


def _refuse_uninformative(log: Log, *, drift: bool) -> None:
    """Refuse a log that says nothing about the mean loss of an arm."""
    unknown = int(np.isnan(log.propensity).sum())
    if len(log) == 0:
        problem, remedy = _why_empty(log)
    elif log.context is not None and not drift:
        why = "and these have contexts, on which losses and exploration may depend"
        problem = f"drift = False: assumes that an arm has one mean for all decisions, {why}"
        remedy = (
            "leave it out, or leave the column `context` out of the log if nothing depends on it"
        )
    elif unknown > 0 and drift:
        why = "so nobody knows how often their arms would have been explored"
        problem = f"log: {unknown} of {len(log)} observed decisions have no propensity, {why}"
        remedy = (
            "log the probability of the explored arm, or pass drift=False if no mean loss ever "
            "changes"
        )
    else:
        return
    raise ParameterError(Message(problem, remedy))


def _why_empty(log: Log) -> tuple[str, str]:
    """Why no decision of a log can be used, and what to do about it."""
    if log.left_out > 0:
        problem = (
            f"log: none of the {log.left_out} decisions with a loss could explore every arm; their "
            "propensities are 1, or some arms were not available, so the log cannot compare the "
            "arms"
        )
        remedy = "log decisions that explore at random, with the probability of the explored arm"
        return problem, remedy
    if log.waiting == 0:
        problem = f"log: has {log.decisions} decisions and no loss"
        return problem, "evaluate it when feedback has come"
    problem = (
        f"log: has {log.decisions} decisions and {log.waiting} losses, which wait for that of an "
        "earlier decision, one that is pending"
    )
    remedy = (
        "evaluate it when feedback has come, or say that none will: give that decision the status "
        "'unobserved'"
    )
    return problem, remedy


def _refuse_unexplored(log: Log, shares: Shares) -> None:
    """Refuse a candidate that would exploit an arm without any loss."""
    for place, arm in enumerate(log.arms):
        if not np.any(log.explore == place) and np.max(shares(place)) > 0.0:
            problem = (
                f"policy: would exploit {arm!r}, which the log never explored: its loss is not "
                "known"
            )
            remedy = "choose a candidate without it, or explore it first"
            raise ParameterError(Message(problem, remedy))


def _is_coupled(log: Log) -> bool:
    """Whether the arm exploited was always the arm explored, though that would be a miracle by
    chance.
    """
    is_same = bool(np.all(log.explore == log.exploit))
    return is_same and float(np.nansum(np.log(log.propensity))) < _LEAST_LOG_CHANCE


class _Served(NamedTuple):
    """What was served: which decisions exploited an arm, their weights, and the model's losses."""

    rows: Bools
    weights: Floats
    model: Floats


class _Estimates:
    """The estimates of one log, on losses in [0, 1].

    Args:
        log: the log.
        risk: the risk of all intervals together.
        shares: the shares of the candidate; None for no candidate.
        least: a propensity that no decision is below; None if none is known.
        drift: whether losses may drift.
        is_coupled: whether the arm exploited is the arm explored.
    """

    def __init__(
        self,
        log: Log,
        risk: float,
        shares: Shares | None,
        least: float | None,
        *,
        drift: bool,
        is_coupled: bool,
    ) -> None:
        self.log = log
        self.drift = drift
        self.least = least
        self.is_coupled = is_coupled
        self.design = None if log.context is None else Design(log.context)
        # Shared by the arms, what was served, and the candidate with its difference. Each has two
        # ends.
        self.risk = risk / (2 * (len(log.arms) + 1 + 2 * (shares is not None)))
        self.inverse = 1.0 / log.propensity
        # Bets are added in the order of the decisions, so that a log in another order says the
        # same.
        self.order = np.argsort(log.made_at, kind="stable")
        self.lows, self.highs = self._plain_ends()
        # By decision: what the model expects of the arm explored, of the arm exploited, and of the
        # candidate, and the candidate's weight. Then the candidate's mean share of each arm, and
        # the estimate of each.
        self.explored = np.zeros(len(log))
        self.exploited = np.zeros(len(log))
        self.expected = np.zeros(len(log))
        self.candidate_weights = np.zeros(len(log))
        self.candidate_means = np.zeros(len(log.arms))
        # What bets say of what was served, of the candidate, and of their difference.
        self.served_question = Question(len(log))
        self.candidate_question = Question(len(log))
        self.difference_question = Question(len(log))
        self.arm_ends: list[_Ends] = []
        self.robust = [self._learn(place, shares) for place in range(len(log.arms))]

    def _learn(self, place: int, shares: Shares | None) -> float:
        """Add an arm to the columns, one at a time to save memory; return its doubly robust
        estimate.
        """
        log = self.log
        plain, model = self._model(place)
        is_explored = log.explore == place
        used = log.exploit == place
        self.explored[is_explored] = model[is_explored]
        self.exploited[used] = model[used]
        share = None
        if shares is not None:
            share = np.broadcast_to(shares(place), len(log))
            self.candidate_weights[is_explored] = share[is_explored] * self.inverse[is_explored]
            self.expected += share * model
            self.candidate_means[place] = share.mean()
        if self.drift:
            chances = self._chances(place)
            # Without a chance only the level counts, and the model may know the fields of later
            # contexts.
            levels = np.where(np.isnan(chances), plain, model)
            seen = ArmSeen(levels, chances, is_explored, log.loss, self.inverse)
            self._bet(place, seen, share)
        corrections = (log.loss[is_explored] - model[is_explored]) * self.inverse[is_explored]
        return float(model.mean() + corrections.sum() / len(log))

    def _bet(self, place: int, seen: ArmSeen, share: Floats | None) -> None:
        """Add an arm to the questions that bets answer."""
        log = self.log
        question = Question(len(log))
        question.add(np.ones(len(log)), seen)
        self.arm_ends.append(question.ends(self.order, self.risk))
        used = (log.exploit == place).astype(np.float64)
        if self.is_coupled:  # what was served is what was seen
            ones = np.ones(len(log))
            sure = seen._replace(chance=ones, inverse_propensity=ones)
            self.served_question.add(seen.is_explored.astype(np.float64), sure)
        else:
            self.served_question.add(used, seen)
        if share is None:
            return
        self.candidate_question.add(share, seen)
        if not self.is_coupled:
            self.difference_question.add(share - used, seen)
        elif log.laws is not None:
            law = log.laws[:, place]
            self.difference_question.add(np.where(np.isnan(law), 0.0, share - law), seen)

    def _chances(self, place: int) -> Floats:
        """The probability with which each decision explored an arm, or what it cannot be below; NaN
        if neither is known.
        """
        log = self.log
        unknown = math.nan if self.least is None else self.least
        if log.laws is None:
            return np.full(len(log), unknown)
        chances = log.laws[:, place]
        return np.where(np.isnan(chances), unknown, chances)

    def _model(self, place: int) -> tuple[Floats, Floats]:
        """For each decision, the mean of the losses of an arm that were known before, and of one
        loss of 1/2; and the loss that was predicted for it.

        Without a prediction, the latter is this mean, with what the context adds to it.
        """
        log = self.log
        rows = np.flatnonzero(log.explore == place)
        rows = rows[np.argsort(log.settled_at[rows], kind="stable")]
        settled_at = log.settled_at[rows]
        known_counts = np.searchsorted(settled_at, log.made_at, side="left")
        sums = np.concatenate([[0.5], 0.5 + np.cumsum(log.loss[rows])])
        plain: Floats = sums[known_counts] / (known_counts + 1.0)
        model = plain
        if self.design is not None:
            model = ridge(self.design, rows, log.loss[rows], settled_at, log.made_at, model)
        if place in log.predicted:
            predicted_rows, values = log.predicted[place]
            model = model.copy()
            model[predicted_rows] = values
        return plain, model

    def _plain_ends(self) -> tuple[Floats, Floats]:
        """The ends of each arm's mean loss from the losses seen of it, see `Singles`."""
        log = self.log
        arms = len(log.arms)
        singles = Singles.start(arms)
        singles.add_looks(log.explore[self.order], log.loss[self.order])
        lows, highs = singles.look_ends(np.full(arms, self.risk))
        return np.maximum(lows, 0.0), np.minimum(highs, 1.0)

    def arm(self, place: int) -> Evaluated:
        """The value of one arm; without estimates if it was never explored."""
        name = str(self.log.arms[place])
        is_explored = self.log.explore == place
        if not is_explored.any():
            return Evaluated(
                name=name,
                telling=0,
                importance_weighted=None,
                self_normalised=None,
                doubly_robust=None,
                low=0.0,
                high=1.0,
            )
        ends = (float(self.lows[place]), float(self.highs[place]))
        if self.drift:
            ends = self.arm_ends[place]
        return self._value(name, is_explored * self.inverse, slice(None), self.robust[place], ends)

    def served_columns(self) -> _Served | None:
        """What was exploited, as columns; None if nothing was."""
        log = self.log
        rows = log.exploit >= 0
        if not rows.any():
            return None
        if self.is_coupled:
            return _Served(rows, np.ones(len(log)), self.explored)
        return _Served(rows, (log.explore == log.exploit) * self.inverse, self.exploited)

    def served(self, columns: _Served) -> Evaluated:
        """The value of what was exploited."""
        log = self.log
        rows = columns.rows
        corrections = columns.weights * (log.loss - self.explored)
        robust = float((columns.model + corrections)[rows].mean())
        shares = np.bincount(log.exploit[rows], minlength=len(log.arms)) / rows.sum()
        ends = self._mixed(shares)
        if self.drift:
            ends = self.served_question.ends(self.order[rows[self.order]], self.risk)
        return self._value("what was served", columns.weights[rows], rows, robust, ends)

    def candidate(self, name: str) -> Evaluated:
        """The value of the candidate."""
        weights = self.candidate_weights
        robust = float((self.expected + weights * (self.log.loss - self.explored)).mean())
        ends = self._mixed(self.candidate_means)
        if self.drift:
            ends = self.candidate_question.ends(self.order, self.risk)
        return self._value(name, weights, slice(None), robust, ends)

    def candidate_minus_served(
        self, candidate: Evaluated, served: Evaluated, columns: _Served
    ) -> Interval | None:
        """The difference of both values; None if some propensities are not known."""
        if candidate.doubly_robust is None or served.doubly_robust is None:
            return None
        estimate = candidate.doubly_robust - served.doubly_robust
        if not self.drift:
            low = candidate.low - served.high
            high = candidate.high - served.low
            return Interval.around(estimate, low, high)
        rows = columns.rows
        if self.is_coupled:
            self._add_difference_without_law(columns)
        low, high = self.difference_question.ends(self.order[rows[self.order]], self.risk)
        low = max(low, -1.0)
        high = min(high, 1.0)
        if low > high:  # empty: no value agrees with the log
            return Interval(estimate, low, high)
        return Interval.around(estimate, low, high)

    def _add_difference_without_law(self, columns: _Served) -> None:
        """Say what bets on the difference know in the standard game, where no law is known."""
        log = self.log
        is_blind: Bools = np.ones(len(log), np.bool_)
        if log.laws is not None:
            is_blind = np.asarray(np.isnan(log.laws).any(axis=1))
        gain = 1.0 - log.loss
        difference_plus_1 = self.candidate_weights * log.loss + columns.weights * gain
        one_minus_difference = columns.weights * log.loss + self.candidate_weights * gain
        self.difference_question.set_uncentred(is_blind, difference_plus_1, one_minus_difference)

    def _mixed(self, means: Floats) -> _Ends:
        """The ends of a mixture of arms, if no mean changes."""
        return float(means @ self.lows), float(means @ self.highs)

    def _value(
        self, name: str, weight: Floats, rows: Bools | slice, robust: float, ends: _Ends
    ) -> Evaluated:
        """A value by the weights of these rows, with its ends."""
        weighted = weight * self.log.loss[rows]
        is_known = not np.isnan(weighted).any()  # else some propensities are not
        has_weight = is_known and bool(weight.any())
        return Evaluated(
            name=name,
            telling=int(np.count_nonzero(weight)),
            importance_weighted=float(weighted.mean()) if is_known else None,
            self_normalised=float(weighted.sum() / weight.sum()) if has_weight else None,
            doubly_robust=robust if is_known else None,
            low=ends[0],
            high=ends[1],
        )

    def remarks(self) -> list[str]:
        """What a reader should know about the log."""
        log = self.log
        remarks = []
        if log.left_out > 0:
            what = f"{log.left_out:,} observed decisions"
            remarks.append(f"{what} could not explore every arm and are left out")
        gaps = describe_gaps(log.missing, log.waiting)
        if gaps is not None:
            remarks.append(gaps)
        for place, arm in enumerate(log.arms):
            if np.any(log.explore == place):
                remark = wrong_propensities(log, place)
            else:
                remark = f"{arm!r} was never explored, so nothing can be told about it"
            if remark is not None:
                remarks.append(remark)
        if self.design is not None and self.design.unused > 0:
            fields = f"without {self.design.unused:,}"
            remarks.append(f"the model uses the fields that most contexts have, {fields}")
        return remarks


def wrong_propensities(log: Log, place: int) -> str | None:
    """A remark if the propensities of an arm cannot be right, because its weights do not average 1;
    otherwise None.

    >>> from decoupled.inference import read_log
    >>> rows = [{"explore": arm, "propensity": 0.9, "loss": 0.5} for arm in 50 * ["b", "a"]]
    >>> wrong_propensities(read_log(rows, (0, 1)), 0)[:40]
    "the weights of 'a' average 0.56 instead "
    """
    weights = (log.explore == place) / log.propensity
    error = float(weights.std()) / math.sqrt(len(log))
    if not np.isfinite(error) or abs(weights.mean() - 1.0) <= _MOST_ERRORS * error:
        return None
    average = f"the weights of {log.arms[place]!r} average {weights.mean():.2f} instead of 1"
    return f"{average}: its propensities are wrong, or it was not there all the time"
