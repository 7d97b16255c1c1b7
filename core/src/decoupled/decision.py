"""A decision: the arm to exploit, the arm to explore, and what learning from the latter needs."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Self, TypeAlias

Arm: TypeAlias = str | int
"""The name of an arm."""
ByArm: TypeAlias = Mapping[str, float] | Mapping[int, float] | Mapping[Arm, float]
"""A number for each of some arms, by name."""
Mode: TypeAlias = Literal["both", "exploit", "explore"]
"""Which arms a decision names."""


class Decision(NamedTuple):
    """A learner's decision. Pass it to `observe` with the loss of `explore`.

    The loss of `exploit` is suffered and never seen; the loss of `explore` is seen and never
    suffered. A policy of the standard game gives the same arm for both, and its loss is suffered
    and seen.

    Attributes:
        id: identifies the decision within its learner; `observe` also takes the id.
        round: 1 + the number of observations applied when the decision was made.
        exploit: the arm to use, or None for a decision that only explores.
        explore: the arm to try; *its* loss is the feedback.
        propensity: the probability with which `explore` was drawn, or None if the policy can only
            estimate its inverse.
        weight: the factor by which learning multiplies the loss, an unbiased 1 / propensity; 1 if
            it takes the loss as it is.
        drawn: the arm that the policy drew to exploit; `exploit`, unless a guardrail replaced it.
        guard: the guardrail that chose `exploit` ("pinned", "holdout", "floor", "incumbent",
            "cheapest" or "frozen"), if any.
        label: whether the decision asks for a label; see `Labels`.
        label_request: what the decision fixed about its label; None without labels.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["red", "green", "blue"], seed=7)
    >>> decision = learner.decide()
    >>> decision.exploit, decision.explore, round(decision.propensity, 3)
    ('green', 'green', 0.333)
    """

    id: str
    round: int
    exploit: Arm | None
    explore: Arm
    propensity: float | None
    weight: float

    @property
    def drawn(self) -> Arm | None:
        """The arm that the policy drew to exploit."""
        return self.exploit

    @property
    def guard(self) -> str | None:
        """The guardrail that chose `exploit`; None if the policy did."""
        return None

    @property
    def why(self) -> "Why | None":
        """Why a contextual policy drew its arm: see `ContextualLadder`.

        None for others, and after saving and loading.
        """
        return None

    @property
    def label_request(self) -> "LabelRequest | None":
        """What the decision fixed about its label; None without labels."""
        return None

    @property
    def label(self) -> bool:
        """Whether the decision asks for a label."""
        return self.label_request is not None and self.label_request.wanted


class LabelRequest(NamedTuple):
    """What a decision fixes about its label; see `Labels`.

    Attributes:
        wanted: whether the decision asks for a label.
        rho: the probability with which it did.
        lam: how much the judge counts, from 0 to 1.
        base: the label to expect if the judged loss is 0. Up to 1 - lam.

    >>> import decoupled as dc
    >>> dc.Ladder().start(arms=2, seed=7, labels=dc.Labels(first=10)).decide().label_request
    LabelRequest(wanted=True, rho=1.0, lam=1.0, base=0.0)
    """

    wanted: bool
    rho: float
    lam: float
    base: float = 0.0

    def estimate(self, judged: float, label: float | None) -> float:
        """What is learned from a judged loss and the label, which is None if none was wanted.

        Both are on a scale from 0 to 1.

        Its mean is that of the label, for any judge that judges every explored answer.

        Args:
            judged: the judged loss.
            label: the label.

        >>> LabelRequest(wanted=False, rho=0.1, lam=0.5).estimate(0.4, None)
        0.2
        >>> LabelRequest(wanted=True, rho=0.1, lam=0.5).estimate(0.4, 1.0)
        8.2
        """
        expected = self.base + self.lam * judged
        return expected if label is None else expected + (label - expected) / self.rho


# The number of labels g with judged losses s, and the sums of s, g, s^2 and s g.
LabelSums: TypeAlias = tuple[float, float, float, float, float]
# Ten labels each of (0, 0) and (1, 1): at first the judge is believed.
_PRIOR = (20.0, 10.0, 10.0, 10.0, 10.0)


def with_label(sums: LabelSums, judged: float, label: float) -> LabelSums:
    """The sums with one more label.

    >>> with_label((1.0, 0.5, 1.0, 0.25, 0.5), judged=0.5, label=0.0)
    (2.0, 1.0, 1.0, 0.5, 0.5)
    """
    count, s, g, ss, sg = sums
    return count + 1.0, s + judged, g + label, ss + judged * judged, sg + judged * label


def fit_line(sums: LabelSums) -> tuple[float, float]:
    """The `lam` and `base` of a `LabelRequest`: the line from judged losses to labels.

    The line is kept within [0, 1].

    >>> fit_line((0.0, 0.0, 0.0, 0.0, 0.0))
    (1.0, 0.0)
    >>> [round(number, 2) for number in fit_line((100.0, 50.0, 50.0, 50.0, 25.0))]
    [0.17, 0.42]
    """
    count, s, g, ss, sg = (value + prior for value, prior in zip(sums, _PRIOR, strict=True))
    lam = min(max((count * sg - s * g) / (count * ss - s * s), 0.0), 1.0)
    return lam, min(max((g - lam * s) / count, 0.0), 1.0 - lam)


class GuardedDecision(Decision):
    """A decision whose `exploit` was chosen by a guardrail, or that has labels, and which compares
    and unpacks like any other.
    """

    _drawn: Arm | None = None
    _guard: str | None = None
    _label_request: LabelRequest | None = None

    @classmethod
    def from_fields(
        cls,
        fields: Iterable[Any],
        guarded: tuple[Arm, str] | None,
        label_request: LabelRequest | None,
    ) -> Self:
        """The decision with these fields of a `Decision`.

        Args:
            fields: the values of the fields, in order.
            guarded: the arm that the policy drew and the guardrail that replaced it; None if none
                did.
            label_request: what the decision fixed about its label; None without labels.
        """
        decision: Self = tuple.__new__(cls, fields)
        decision._label_request = label_request
        if guarded is not None:
            decision._drawn, decision._guard = guarded
        return decision

    @property
    def drawn(self) -> Arm | None:
        """The arm that the policy drew to exploit."""
        return self.exploit if self._guard is None else self._drawn

    @property
    def label_request(self) -> LabelRequest | None:
        """What the decision fixed about its label; None without labels."""
        return self._label_request

    @property
    def guard(self) -> str | None:
        """The guardrail that chose `exploit`."""
        return self._guard


class Why(NamedTuple):
    """Why a contextual policy drew the arm that it exploits: `decision.why`.

    Attributes:
        rung: the rung that drew the arm.
        segment: the values that tell the segment apart, in the order of `segments`, if any; None
            for a missing field.
        weights: the probability with which each rung was drawn.

    >>> import decoupled as dc
    >>> learner = dc.ContextualLadder(segments=("language",)).start(arms=2, seed=1)
    >>> why = learner.decide(context={"language": "de"}).why
    >>> why.segment, sorted(why.weights)
    (('de',), ['pooled', 'segments', 'shrunk'])
    """

    rung: str
    segment: tuple[str | None, ...]
    weights: dict[str, float]


# The names of the rungs, the place of the one that drew the arm, the segment, and the weights.
WhyFields: TypeAlias = tuple[tuple[str, ...], int, tuple[str | None, ...], list[float]]


class ContextualDecision(GuardedDecision):
    """A decision of a contextual policy, which compares and unpacks like any other."""

    _why: WhyFields | None = None

    @classmethod
    def from_fields(
        cls,
        fields: Iterable[Any],
        guarded: tuple[Arm, str] | None,
        label_request: LabelRequest | None,
        why: WhyFields | None = None,
    ) -> Self:
        """The decision with these fields of a `Decision`.

        Args:
            fields: the values of the fields, in order.
            guarded: the arm that the policy drew and the guardrail that replaced it; None if none
                did.
            label_request: what the decision fixed about its label; None without labels.
            why: what `why` is made of.
        """
        decision: Self = super().from_fields(fields, guarded, label_request)
        decision._why = why
        return decision

    @property
    def why(self) -> Why | None:
        """Why the policy drew its arm."""
        if self._why is None:
            return None
        rungs, served, segment, weights = self._why
        return Why(rungs[served], segment, dict(zip(rungs, weights, strict=True)))


class Served(NamedTuple):
    """An arm to use now, without exploring: what `Learner.exploit` returns.

    Attributes:
        exploit: the arm to use.
        drawn: the arm that the policy drew; another than `exploit` if a guardrail replaced it.
        guard: the guardrail that chose `exploit`; None if the policy did.
        limited_by: the part of a budget that kept a decision from exploring, see `Meter`; None if
            there was none.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["red", "green"], seed=7)
    >>> learner.guardrails = dc.Guardrails(pinned="red")
    >>> learner.exploit()
    Served(exploit='red', drawn='green', guard='pinned', limited_by=None)
    """

    exploit: Arm
    drawn: Arm
    guard: str | None = None
    limited_by: str | None = None

    @property
    def explore(self) -> None:
        """None: there is nothing to try, and no feedback to send."""
        return
