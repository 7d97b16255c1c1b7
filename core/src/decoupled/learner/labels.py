"""Labels: the true loss of some explored answers, told by somebody who knows, so that what is
learned is true for any judge.

Let s be the judged loss of the explored arm and g its true loss, both in [0, 1]. A coin of
probability rho, tossed by `decide`, says whether the decision asks for a label. The learner is fed

    l = f + (a / rho) (g - f),    f = base + lam s,    a = 1 if it was labelled, else 0.

Given the past, the coin has the mean rho, so l has the mean of g, for any judge and any base, lam
and rho that are fixed with the decision. An answer without a judgement counts as nothing, so a
judge that is silent about the bad answers of one arm makes what is learned wrong. docs/labels.md
has the proof, and what it assumes. The better f predicts g, the less l varies: f is the line fitted
to the labels so far. A judge that tells nothing gets lam = 0, and f is the mean label.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ..base.validation import check_number, set_whole, whole_number
from ..decision import Decision, LabelRequest, LabelSums, fit_line, with_label
from ..errors import FeedbackError, Message, ParameterError
from ..inference.ordering import MOST_PATIENCE
from .pending import number_of
from .replay import Record
from .seeds import hashed

LEAST_SHARE = 0.001
_CHANGED = "it was changed"
NO_LABELS: LabelSums = (0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Labels:
    """How many explored decisions ask for a label: the true loss.

    A judge, such as a language model or a proxy metric, may favour the worse arm. With labels,
    estimates and verdicts are about the true loss, for any judge that judges every explored answer.
    One without a judgement counts as nothing, and its label is refused; so where the judge is
    silent, give a fixed number as `judged`. See the guide "Can I trust my judge?".

    Args:
        share: the probability with which a decision asks for a label, from 0.001 to 1.
        first: this many decisions ask for one at the start.
        deadline: after this many newer decisions a label no longer counts, up to 10,000.
        missing: the loss that a missing label counts as, from 0, the lowest of `loss_range`, to 1,
            the highest.

    >>> import decoupled as dc
    >>> labels = dc.Labels(share=0.1, first=200)
    >>> learner = dc.Ladder().start(arms=["small", "large"], seed=7, labels=labels)
    >>> decision = learner.decide()
    >>> decision.label                         # the first 200 ask for a label
    True
    >>> learner.observe(decision, judged=0.3)  # what the judge says; the decision stays pending
    >>> learner.observe(decision, loss=0.0)    # the label
    >>> learner.labels
    LabelStatus(used=1, missing=0, awaiting=0, lam=1.0)
    """

    share: float = 0.1
    first: int = 200
    deadline: int = MOST_PATIENCE
    missing: float = 0.5

    def __post_init__(self) -> None:
        remedy = "to do without labels, leave out labels="
        object.__setattr__(
            self,
            "share",
            check_number("share", self.share, remedy, at_least=LEAST_SHARE, at_most=1.0),
        )
        set_whole(self, "first", 0, "the default is 200")
        set_whole(self, "deadline", 1, "the default is 10,000", MOST_PATIENCE)
        missing = check_number(
            "missing", self.missing, "the default is 0.5, the middle", at_least=0.0, at_most=1.0
        )
        object.__setattr__(self, "missing", missing)

    @property
    def width(self) -> float:
        """The width of the range [1 - 1 / share, 1 / share] of what is fed."""
        return 2.0 / self.share - 1.0

    def to_unit(self, estimate: float) -> float:
        """An estimate on a scale from 0 to 1, for policies. The map is the same for all decisions.

        Args:
            estimate: what `LabelRequest.estimate` gives, from 1 - 1 / share to 1 / share.

        >>> labels = Labels(share=0.5)
        >>> [labels.to_unit(estimate) for estimate in (-1.0, 0.5, 2.0)]
        [0.0, 0.5, 1.0]
        """
        return min(max(0.5 + (estimate - 0.5) / self.width, 0.0), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The rules as plain values."""
        return asdict(self)


class LabelStatus(NamedTuple):
    """The labels of a learner so far: `Learner.labels`.

    Attributes:
        used: how many labels were learned from.
        missing: how many did not arrive in time.
        awaiting: how many decisions were judged and await their label.
        lam: how much the judge counts in the next decision: the slope of labels on judgements,
            between 0 and 1.

    >>> import decoupled as dc
    >>> learner = dc.Ladder().start(2, seed=7, labels=dc.Labels(share=1.0))
    >>> learner.observe(learner.decide(), judged=0.0, loss=1.0)
    >>> learner.labels.used, round(learner.labels.lam, 2)
    (1, 0.91)
    """

    used: int
    missing: int
    awaiting: int
    lam: float


class Judged(NamedTuple):
    """What a judge said of a decision: the loss, and how much it preferred what it saw first, if
    that is known.
    """

    loss: float
    position: float | None


class Judgement(NamedTuple):
    """What is known of a decision that was judged.

    Attributes:
        judged: what the judge said.
        label: the label; None if there is none.
        fallback: what counts, on the map of `Labels.to_unit`, if the label that it awaits never
            comes; None if it awaits none.
        counts_as: the label itself, or what a missing one counts as; None if none was wanted.
    """

    judged: Judged
    label: float | None
    fallback: float | None
    counts_as: float | None = None


class JudgedFeedback(NamedTuple):
    """What a call of `Learner.observe` says of a decision of a learner with labels.

    Attributes:
        judged: what the judge says; None if it was said in an earlier call.
        label: the label, on a scale from 0 to 1; None if there is none.
        is_preference: whether either was a preference between the two arms.
    """

    judged: Judged | None
    label: float | None
    is_preference: bool


class LabelledLoss(NamedTuple):
    """What is learned from a decision that was judged, and what it changes about the labels.

    Attributes:
        loss: what the policy learns, on a scale from 0 to 1.
        sums: what labels say of the judge from then on.
        missing: how many labels are missing from then on.
        judgement: what is known of the decision.
    """

    loss: float
    sums: LabelSums
    missing: int
    judgement: Judgement


class Labelling:
    """The labels of one learner: the rules, the sums that lam is fitted to, and what was judged and
    awaits its label.
    """

    def __init__(self, rules: Labels, sums: LabelSums = NO_LABELS, missing: int = 0) -> None:
        self.rules = rules
        self.judged: dict[str, Judged] = {}
        # No label is overdue before so many decisions are made.
        self.next_due = 0
        self.set_sums(sums, missing)

    def set_sums(self, sums: LabelSums, missing: int) -> None:
        """Note what labels say so far, and how many are missing; this may be repeated.

        `sums` are not changed later.
        """
        self.sums = sums
        self.missing = missing
        self.lam, self.base = fit_line(sums)

    def ask(self, number: int, stream: bytes) -> LabelRequest:
        """Toss a decision's coin: like a guardrail's draw, it moves no random number, and only the
        seed foretells it.
        """
        rho = 1.0 if number <= self.rules.first else self.rules.share
        wanted = rho == 1.0 or hashed(f"label-{stream.hex()}-{number}") < rho
        return LabelRequest(wanted, rho, self.lam, self.base)

    @property
    def status(self) -> LabelStatus:
        """The labels so far."""
        return LabelStatus(int(self.sums[0]), self.missing, len(self.judged), self.lam)

    def check(self, decision: Decision, judged: object, label: object) -> None:
        """Raise an error if this cannot be the feedback of a decision."""
        name = f"decision {decision.id!r}"
        judged_before = decision.id in self.judged
        if judged is None and not judged_before:
            problem = f"{name}: was not judged, and a label alone would bias what is learned"
            remedy = "give judged= too, in this call or an earlier one"
            raise FeedbackError(Message(problem, remedy))
        if judged is not None and judged_before:
            problem = f"{name}: was judged already, and awaits its label"
            raise FeedbackError(Message(problem, "send loss= alone"))
        if label is not None and not decision.label:
            problem = (
                f"{name}: wants no label, and one that was not drawn by chance would bias what is "
                "learned"
            )
            remedy = "send judged= alone; decision.label says whether one is wanted"
            raise FeedbackError(Message(problem, remedy))

    def fed(self, request: LabelRequest, judged: float, label: float | None) -> float:
        """What is learned from a judged loss and perhaps a label, on a scale from 0 to 1."""
        return self.rules.to_unit(request.estimate(judged, label))

    def loss_of(self, decision: Decision, judged: Judged, label: float | None) -> LabelledLoss:
        """What is learned from a decision with this judgement, and perhaps a label."""
        loss = self.fed(label_request_of(decision), judged.loss, label)
        sums = self.sums if label is None else with_label(self.sums, judged.loss, label)
        return LabelledLoss(loss, sums, self.missing, Judgement(judged, label, None, label))

    def loss_without_label(self, decision: Decision) -> LabelledLoss:
        """What is learned from a decision that was judged, and whose label never came."""
        judged = self.judged[decision.id]
        loss = self.fed(label_request_of(decision), judged.loss, self.rules.missing)
        return LabelledLoss(
            loss, self.sums, self.missing + 1, Judgement(judged, None, loss, self.rules.missing)
        )

    def awaited(self, decision: Decision, judged: Judged) -> Judgement:
        """What is known of a decision that was judged and awaits its label."""
        fallback = self.fed(label_request_of(decision), judged.loss, self.rules.missing)
        return Judgement(judged, None, fallback, self.rules.missing)

    def note(self, decision_id: str, learned: LabelledLoss | None) -> None:
        """Note that the decision with this id awaits no label any more.

        `learned` is what was learned from it; None if that says nothing about the judge.
        """
        if learned is not None and (learned.sums, learned.missing) != (self.sums, self.missing):
            self.set_sums(learned.sums, learned.missing)
        self.judged.pop(decision_id, None)

    def learn_logged(self, record: Record) -> float:
        """What is learned from a record of a log, on a scale from 0 to 1, and what its label says
        of the judge.
        """
        if record.judged is None:
            assert record.loss is not None
            return self.rules.to_unit(record.loss)
        label = record.loss
        loss = self.fed(
            LabelRequest(label is not None, record.rho, self.lam, self.base), record.judged, label
        )
        if label is not None:
            self.set_sums(with_label(self.sums, record.judged, label), self.missing)
        return loss

    def overdue(self, decisions: int) -> list[str]:
        """The ids of decisions whose label is overdue when so many were made, oldest first."""
        if not self.judged or decisions < self.next_due:
            return []
        numbers = sorted((number_of(decision_id), decision_id) for decision_id in self.judged)
        last = decisions - self.rules.deadline
        overdue = [decision_id for number, decision_id in numbers if number <= last]
        self.next_due = numbers[0][0] + self.rules.deadline  # of the first that is not settled yet
        return overdue

    def expect(self, decision_id: str, judged: Judged) -> None:
        """Await the label of a decision; this may be repeated."""
        due = number_of(decision_id) + self.rules.deadline
        self.next_due = min(self.next_due, due) if self.judged else due
        self.judged[decision_id] = judged

    def to_json(self) -> dict[str, Any]:
        """Everything but what decisions keep themselves, as plain values."""
        judged = [[decision_id, *said] for decision_id, said in self.judged.items()]
        rules = self.rules.to_dict()
        sums = list(self.sums)
        return {"rules": rules, "sums": sums, "missing": self.missing, "judged": judged}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Labelling":
        """Restore the result of `to_json`."""
        count, s, g, ss, sg = (
            check_number("sums", number, _CHANGED, at_least=0.0, at_most=1e15)
            for number in content["sums"]
        )
        missing = whole_number("missing", content["missing"], 0, _CHANGED)
        labelling = cls(Labels(**content["rules"]), (count, s, g, ss, sg), missing)
        for decision_id, loss, position in content["judged"]:
            labelling.expect(
                decision_id,
                Judged(
                    check_number("judged", loss, _CHANGED, at_least=0.0, at_most=1.0),
                    checked_position(position),
                ),
            )
        return labelling


def label_request_of(decision: Decision) -> LabelRequest:
    """What a decision of a learner with labels fixed about its label."""
    request = decision.label_request
    assert request is not None
    return request


def checked_position(position: object) -> float | None:
    """How much a judge preferred what it saw first, from -1 to 1; None if that is not known.

    >>> checked_position(1), checked_position(None)
    (1.0, None)
    """
    remedy = "1 if what the judge saw first won, -1 if the second did, 0 for a tie"
    return (
        None
        if position is None
        else check_number("position", position, remedy, at_least=-1.0, at_most=1.0)
    )


def checked_labels(labels: object) -> Labels:
    """Labels as a learner takes them."""
    if not isinstance(labels, Labels):
        raise ParameterError.of(
            "labels", labels, "must be labels", "for example dc.Labels(share=0.1)"
        )
    return labels
