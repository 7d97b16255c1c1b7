"""Computes the loss of a copy: the weighted mean of its parts."""

from .config import LossConfig
from .exchange import Answer, Request
from .judges import Judge


class CopyLoss:
    """Computes losses in [0, 1].

    A copy without an answer, or whose answer broke off, has the loss 1, whatever the parts are: an arm must not gain
    by failing.
    """

    def __init__(self, config: LossConfig, judge: Judge | None = None) -> None:
        self._config, self._judge = config, judge
        terms = (config.latency, config.duration, config.bytes, config.cost, config.judge)
        self._total = config.status + sum(term.weight for term in terms if term is not None)

    @property
    def takes_served(self) -> bool:
        """Whether the answer that a client got can stand for a copy to the same arm.

        Not if its duration counts, because a slow client stretches it.
        """
        return self._config.duration is None

    async def of(
        self, decision: str, request: Request, served: Answer | None, mirrored: Answer
    ) -> float | None:
        """The loss of the mirrored answer; None if the judge has no opinion."""
        if failed(mirrored):
            return 1.0
        verdict: float | None = 0.0
        if self._judge is not None and self._config.judge is not None:
            verdict = await self._judge.loss(decision, request, served, mirrored)
        return None if verdict is None else self.with_verdict(mirrored, verdict)

    def with_verdict(self, mirrored: Answer, verdict: float) -> float:
        """The loss if the judge's part has this value.

        >>> from decoupled_serve.mirror.config import JudgeConfig
        >>> loss = CopyLoss(LossConfig(status=1.0, judge=JudgeConfig(python="a:b", weight=3.0)))
        >>> loss.with_verdict(Answer("a", 200), 1.0)
        0.75
        """
        judge = self._config.judge
        weight = 0.0 if judge is None else judge.weight
        parts = self.measured(mirrored) + weight * verdict
        return 1.0 if failed(mirrored) else min(max(parts / self._total, 0.0), 1.0)

    def measured(self, answer: Answer) -> float:
        """The weighted sum of the parts that need no judge.

        >>> from decoupled_serve.mirror.config import TermConfig
        >>> half = LossConfig(status=1.0, latency=TermConfig(high=2.0))
        >>> CopyLoss(half).measured(Answer("a", 503, latency=1.0))
        1.5
        """
        config, total, status = self._config, 0.0, answer.status
        if status is None or (status >= config.bad_status and status not in config.good_status):
            total += config.status
        for term, value in (
            (config.latency, answer.latency),
            (config.duration, answer.duration),
            (config.bytes, float(answer.size)),
            (config.cost, answer.cost),
        ):
            if term is not None:
                total += term.weight * (1.0 if value is None else term.at(value))
        return total


def failed(answer: Answer) -> bool:
    """Whether an answer did not come, or broke off. One that was cut at the limit did come.

    >>> failed(Answer("a", None, problem="cannot be connected to")), failed(Answer("a", 500))
    (True, False)
    """
    return answer.status is None or answer.problem is not None
