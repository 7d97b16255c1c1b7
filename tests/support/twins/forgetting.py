"""A slow, obvious twin of `Forgetting`, around any twin that keeps estimates."""

from collections.abc import Callable, Sequence
from typing import Any

from support.twins import Floats, Twin, twin_for, twin_of
from support.twins.centred import CentredFTPLTwin


class ForgettingTwin(Twin):
    """A restart replaces the inner twin; a discount shrinks its estimates and its number of observations."""

    def __init__(
        self, make: Callable[[], Twin], period: int | None, discount: float | None
    ) -> None:
        self.make, self.period, self.discount = make, period, discount
        self.inner = make()
        self.knows_propensity = self.inner.knows_propensity
        super().__init__(len(self.inner.estimates))

    @property
    def eta(self) -> float:
        return self.inner.eta

    def exploration_law(self) -> Floats:
        return self.inner.exploration_law()

    def exploitation_law(self) -> Floats:
        return self.inner.exploitation_law()

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.inner.update(arm, weight, loss)
        self.forget()

    def replay(self, arm: int, weight: float, loss: float) -> None:
        self.inner.replay(arm, weight, loss)
        self.forget()

    def forget(self) -> None:
        self.observations += 1
        if self.period is not None and self.observations % self.period == 0:
            self.inner = self.make()
        if self.discount is not None:
            self.inner.estimates = self.discount * self.inner.estimates
            self.inner.observations = self.discount * self.inner.observations  # type: ignore[assignment]
            if isinstance(self.inner, CentredFTPLTwin):  # the running mean forgets by itself
                self.inner.spread *= self.discount
        self.estimates = self.inner.estimates

    def restricted(self, places: Sequence[int]) -> Twin:
        return self.inner.restricted(places)


@twin_for("Forgetting")
def forgetting_twin(policy: Any, arms: int) -> Twin:
    return ForgettingTwin(lambda: twin_of(policy.policy, arms), policy.period, policy.discount)
