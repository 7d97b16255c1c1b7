"""A learner with the habits of scikit-learn: `fit` a log, `partial_fit` more of it, `predict` the arm to exploit."""

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, Self, overload

import numpy as np

from decoupled.base import Floats, is_missing, needed_for, whole_number
from decoupled.decision import Arm
from decoupled.errors import ParameterError
from decoupled.learner import Arms, Context, Learner, Seed, checked_name, refuse_context
from decoupled.policies import Ladder, Policy
from decoupled.policy import Definition

with needed_for("decoupled_lab.sklearn"):
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted


class DecoupledBandit(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Learns from a log by `Learner.replay`, like a scikit-learn estimator.

    A row of the log is an arm that was explored, its loss, and the probability with which it was explored. `clone`,
    `set_params` and pickling work as with any estimator. A call that raises an error changes nothing.

    After `fit`, `learner_` is the learner, which can continue live with `decide` and `observe`, and `arms_` are its
    arms.

    Args:
        policy: the policy to run; None for `Ladder()`.
        arms: the names of the arms, or their number; None for those in the log of the first fit, sorted.
        seed: the seed of the draws. With a number, `fit` does the same each time; None draws fresh randomness.
        loss_range: the lowest and the highest possible loss.

    >>> bandit = DecoupledBandit(arms=["email", "push"])
    >>> bandit.fit(["email", "push"] * 100, [0.75, 0.25] * 100, propensities=0.5)
    DecoupledBandit(arms=['email', 'push'])
    >>> bandit.predict()
    'push'
    >>> bandit.predict_proba().round(3).tolist()
    [0.0, 1.0]
    """

    learner_: Learner
    _randomised = False

    def __init__(
        self,
        policy: Policy | None = None,
        arms: Arms | None = None,
        seed: Seed = 0,
        loss_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.policy, self.arms, self.seed, self.loss_range = policy, arms, seed, loss_range

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A log is a column of arms, and no matrix.
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.target_tags.required = True
        tags.non_deterministic = True  # `predict` draws, each time anew
        return tags

    @property
    def arms_(self) -> tuple[Arm, ...]:
        """The arms, in the order of the columns of `predict_proba`."""
        return self.learner_.arms

    # Learning

    def fit(
        self,
        arms: Iterable[Arm],
        losses: Iterable[float],
        propensities: Iterable[float] | float,
        contexts: Iterable[Any] | None = None,
    ) -> Self:
        """Learn from a log, and forget what was learned before.

        Args:
            arms: the arm that was explored, for each row.
            losses: its loss.
            propensities: the probability with which it was explored, or one number for all rows, such as 1 / 3 for an
                even split among three arms. Policies that keep means, such as `TopTwo()` or `UCB1()`, accept 1.
            contexts: what was known of each request, for a `ContextualLadder`: mappings, or a DataFrame.
        """
        policy = Ladder() if self.policy is None else self.policy
        if not isinstance(policy, Policy):
            raise ParameterError.of("policy", policy, "must be a policy", "for example dc.Ladder()")
        rows = _rows(policy, arms, losses, propensities, contexts)
        names = self.arms
        if names is None:  # whole numbers before strings, since they do not compare
            explored = {checked_name(row["explore"]) for row in rows}
            names = sorted(explored, key=lambda name: (isinstance(name, str), name))
        learner = policy.start(names, self.seed, loss_range=self.loss_range)
        learner.replay(rows)
        self.learner_, self._randomised = learner, _is_randomised(rows)
        return self

    def partial_fit(
        self,
        arms: Iterable[Arm],
        losses: Iterable[float],
        propensities: Iterable[float] | float,
        contexts: Iterable[Any] | None = None,
    ) -> Self:
        """Learn from more of a log: what one `fit` on all of it learns, to the bit.

        Args:
            arms: the arm that was explored, for each row. It must be known: name all arms in the constructor, or add it.
            losses: its loss.
            propensities: the probability with which it was explored, or one number for all rows.
            contexts: what was known of each request, as in `fit`.

        >>> bandit = DecoupledBandit().fit(["a", "b"], [0.5, 0.25], 0.5)
        >>> bandit.partial_fit(["a", "b"], [0.75, 0.5], 0.5).learner_.round
        5
        """
        if not hasattr(self, "learner_"):
            return self.fit(arms, losses, propensities, contexts)
        rows = _rows(self.learner_.policy, arms, losses, propensities, contexts)
        # As in one log, some rows may have chance 1.
        self.learner_.replay(rows, unrandomised=self._randomised)
        self._randomised |= _is_randomised(rows)
        return self

    def add_arm(self, arm: Arm) -> None:
        """Add an arm to the learner, until the next `fit`; see `Learner.add_arms`.

        Args:
            arm: a name that no arm has.
        """
        self._fitted().add_arms([arm])

    def remove_arm(self, arm: Arm) -> None:
        """Retire an arm of the learner, until the next `fit`; see `Learner.retire_arms`.

        Args:
            arm: the arm; at least two others must stay.
        """
        self._fitted().retire_arms([arm])

    # Choosing

    @overload
    def predict(self, contexts: Context | None = None, *, count: None = None) -> Arm: ...
    @overload
    def predict(self, contexts: Context | None = None, *, count: int) -> list[Arm]: ...
    @overload
    def predict(self, contexts: Iterable[Any], *, count: None = None) -> list[Arm]: ...

    def predict(
        self, contexts: Iterable[Any] | Context | None = None, *, count: int | None = None
    ) -> Arm | list[Arm]:
        """Draw the arm to exploit.

        It changes only the random stream. With a coupled policy, such as `UCB1()`, each draw also counts as a
        decision made and forgotten.

        Args:
            contexts: what is known of a request, for a `ContextualLadder`; or a list or a DataFrame of such, which gives
                a list with an arm for each.
            count: how many arms to draw, for a list; None for one arm.

        >>> bandit = DecoupledBandit(seed=1).fit(["a", "b"] * 100, [0.75, 0.25] * 100, 0.5)
        >>> bandit.predict(), bandit.predict(count=2)
        ('b', ['b', 'b'])
        """
        learner, given = self._fitted(), _contexts(contexts)
        if count is None:
            drawn: Arm | list[Arm] = _each(given, lambda context: _exploited(learner, context))
            return drawn
        repeats = whole_number("count", count, 1, "leave it out for a single arm")
        if isinstance(given, list):
            rule = "was given with a list of contexts, which has its own length"
            raise ParameterError.of("count", count, rule, "leave it out")
        return [_exploited(learner, given) for _ in range(repeats)]

    def predict_proba(self, contexts: Iterable[Any] | Context | None = None) -> Floats:
        """The exact probability with which `predict` draws each of `arms_`.

        Args:
            contexts: as in `predict`; a list or a DataFrame gives a row for each.
        """
        return _laws(self._fitted(), contexts, Learner.exploitation_probabilities)

    def explore_proba(self, contexts: Iterable[Any] | Context | None = None) -> Floats:
        """The exact probability with which `learner_.decide()` explores each of `arms_`: the propensities to log.

        Args:
            contexts: as in `predict_proba`.

        >>> bandit = DecoupledBandit().fit(["a", "b"], [0.5, 0.5], 0.5)
        >>> bandit.explore_proba().tolist()
        [0.5, 0.5]
        """
        return _laws(self._fitted(), contexts, Learner.exploration_probabilities)

    def _fitted(self) -> Learner:
        check_is_fitted(self, "learner_")
        return self.learner_


def _rows(
    policy: Definition, arms: Any, losses: Any, propensities: Any, contexts: Any
) -> list[dict[str, Any]]:
    """The log as records of `Learner.replay`."""
    explored = _column("arms", arms)
    if isinstance(propensities, Real):
        propensities = [propensities] * len(explored)
    columns = {
        "explore": explored,
        "propensity": _column("propensities", propensities, len(explored)),
        "loss": _column("losses", losses, len(explored)),
    }
    if contexts is not None:
        if not policy.contextual:
            refuse_context(policy)
        columns["context"] = _column("contexts", _contexts(contexts), len(explored))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _exploited(learner: Learner, context: Context | None) -> Arm:
    if not learner.policy.coupled:
        return learner.exploit(context=context).exploit
    decision = learner.decide(context=context)
    learner.forget(
        decision
    )  # the arm that is played is the arm that is seen, and nobody will say its loss
    return decision.exploit  # type: ignore[return-value] # only `explore` leaves it out


def _each(contexts: list[Context] | Context | None, ask: Callable[[Context | None], Any]) -> Any:
    """The answer for one context or none, or a list of answers for a list of contexts."""
    return [ask(context) for context in contexts] if isinstance(contexts, list) else ask(contexts)


def _laws(learner: Learner, contexts: Any, ask: Callable[..., Floats]) -> Floats:
    found = np.array(_each(_contexts(contexts), lambda context: ask(learner, context=context)))
    return found if len(found) > 0 else found.reshape(0, len(learner.arms))


def _is_randomised(rows: list[dict[str, Any]]) -> bool:
    return any(row["propensity"] != 1.0 for row in rows)


def _contexts(given: Any) -> Any:
    """One context, or a list of them; a DataFrame has one in each row, and a row of it is one."""
    if given is None or isinstance(given, Mapping):
        return given
    if hasattr(given, "to_dicts"):  # Polars
        return given.to_dicts()
    if hasattr(given, "to_dict"):
        if given.ndim == 2:
            return [_plain(row) for row in given.to_dict("records")]
        if not any(isinstance(each, Mapping) for each in given):
            return _plain(given.to_dict())
    return _column("contexts", given)


def _plain(row: Mapping[Any, Any]) -> Context:
    """A row of a DataFrame, where NaN stands for a missing value and makes whole numbers floats."""
    whole = {
        name: int(each)
        for name, each in row.items()
        if isinstance(each, float) and each.is_integer()
    }
    return {name: None if is_missing(each) else whole.get(name, each) for name, each in row.items()}


def _column(name: str, values: Any, length: int | None = None) -> list[Any]:
    """A column of the log as a list, with values of Python where NumPy or pandas has its own."""
    is_text = isinstance(values, (str, bytes, Mapping))
    if is_text or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        rule = "must be a list or an array with one dimension"
        raise ParameterError.of(name, values, rule, "give a value for each row of the log")
    column = values.tolist() if hasattr(values, "tolist") else list(values)
    if length is not None and len(column) != length:
        rule = f"has {len(column)} values for {length} arms"
        raise ParameterError(f"{name}: {rule}; give one for each row of the log")
    return column
