"""The service against a plain model of it, whatever is asked in whatever order, on either store."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import decoupled as dc
from decoupled.client.errors import ServiceError, StoreError
from decoupled.decision import Decision, Mode
from decoupled_serve.service.commits.replies import Reply
from decoupled_serve.service.experiment.records import DecisionRecord, Settings
from decoupled_serve.service.service import DecisionService
from support.stores import both_stores, full_disk, killed, quick_service
from support.waiting import Clock

ARMS = ("a", "b", "c")
MODES: list[Mode] = ["both", "exploit", "explore"]
DEADLINE = 5.0
LABELS = dc.Labels(share=0.5, first=2, deadline=3, missing=0.25)
_tenants = count()


@dataclass
class Made:
    """A decision as the model has it."""

    record: DecisionRecord
    twin: Decision | None
    status: str
    loss: float | None = None
    late: bool = False
    judged: float | None = None


class ServiceMachine(RuleBasedStateMachine):
    """Asks a service and a model the same things; the model is a learner, a dictionary and a list."""

    def __init__(self, address: str, labels: dc.Labels | None) -> None:
        super().__init__()
        self.labels, self.deadline = labels, DEADLINE if labels is None else 8.0 * DEADLINE
        self.address, self.clock, self.tenant = address, Clock(), f"tenant{next(_tenants)}"
        self.service: DecisionService = quick_service(address, clock=self.clock, snapshot_every=5)
        self.made: dict[str, Made] = {}
        self.keys: dict[str, tuple[Any, list[str]]] = {}
        self.archived = False

    @initialize(default=st.sampled_from([None, 0.25]), seed=st.integers(0, 3))
    def create(self, default: float | None, seed: int) -> None:
        self.default = default
        chosen = Settings(
            {"name": "Exp3"}, ARMS, deadline=self.deadline, expired_loss=default, labels=self.labels
        )
        assert self.service.experiments.put(self.tenant, "one", chosen, seed=seed).result()[1]
        self.learner = dc.Exp3().start(ARMS, seed=seed, labels=self.labels)

    def teardown(self) -> None:
        try:
            self.clock.now += self.deadline
            self.look()
        finally:
            self.service.close()

    # The model

    def expire_one(self, each: Made) -> None:
        due = each.record.expires_at is not None and each.record.expires_at <= self.clock.now
        if each.status == "pending" and due and each.twin is not None and each.judged is None:
            each.status, each.loss = "expired", self.default
            if self.default is None:
                self.learner.forget(each.twin)
            else:
                self.learner.expire(each.twin, self.default)

    def expire(self) -> None:
        self.settle_overdue()
        for each in self.made.values():
            self.expire_one(each)

    def settle_overdue(self) -> None:
        """A label counts until so many newer decisions are made; those that explore nothing want none."""
        exploring = [each for each in self.made.values() if each.twin is not None]
        for each in exploring[: max(len(exploring) - LABELS.deadline, 0)]:
            if each.judged is not None and each.status == "pending" and each.twin is not None:
                self.learner.forget(each.twin)
                each.status, each.loss = "expired", LABELS.missing

    def expected_labelled(self, each: Made, loss: float | None, judged: float | None) -> int:
        again = judged is not None and each.judged == judged
        if each.status == "unobserved" or each.twin is None:
            return 409
        if each.status != "pending":
            if again and loss is None:
                return 200
            if each.status == "expired":
                each.late = True
                return 410
            return 200 if judged in (None, each.judged) and loss in (None, each.loss) else 409
        if (judged is None and each.judged is None) or (loss is not None and not each.twin.label):
            return 409
        if each.judged is not None and (judged not in (None, each.judged) or loss is None):
            return 200 if again else 409
        self.learner.observe(each.twin, loss, judged=judged if each.judged is None else None)
        each.judged = judged if each.judged is None else each.judged
        if loss is not None or not each.twin.label:
            each.status, each.loss = "applied", loss
        return 200

    def expected_feedback(self, each: Made, loss: float | None, judged: float | None) -> int:
        if self.labels is None and judged is not None:
            return 422
        if self.labels is not None:
            return self.expected_labelled(each, loss, judged)
        if each.status == "unobserved" or (each.status == "applied" and each.loss != loss):
            return 409
        if each.status == "expired":
            each.late = True
            return 410
        if each.status == "pending" and each.twin is not None:
            self.learner.observe(each.twin, loss)
            each.status, each.loss = "applied", loss
        return 200

    # What is asked

    @rule(
        mode=st.sampled_from(MODES),
        many=st.integers(1, 3),
        available=st.sampled_from([None, ["a", "c"], ["b"]]),
        key=st.sampled_from([None, "k1", "k2"]),
    )
    def decide(self, mode: Mode, many: int, available: list[str] | None, key: str | None) -> None:
        asked = self.service.decisions.decide(
            self.tenant, "one", mode=mode, count=many, available=available, idempotency_key=key
        )
        if key in self.keys:
            request, names = self.keys[key]
            if request != (mode, many, available):
                assert status_of(asked) == 409
            else:
                assert [each.id for each in asked.result()] == names
            return
        if self.archived:
            assert status_of(asked) == 409
            return
        self.expire()
        records = asked.result()
        for record in records:
            twin = None
            if mode == "exploit":
                assert record.exploit == self.learner.exploit(available=available).exploit
            else:
                twin = (
                    self.learner.decide(available=available)
                    if mode == "both"
                    else self.learner.explore(available=available)
                )
                assert (record.exploit, record.explore, record.propensity, record.weight) == twin[
                    2:
                ]
                assert record.label == twin.label
            assert record.expires_at == (None if twin is None else self.clock.now + self.deadline)
            self.made[record.id] = Made(record, twin, "pending" if twin else "unobserved")
        assert len(records) == many
        if key is not None:
            self.keys[key] = ((mode, many, available), [record.id for record in records])

    @precondition(lambda self: self.made)
    @rule(
        data=st.data(),
        said=st.sampled_from(
            [(0.5, None), (1.0, None), (None, 0.25), (None, 0.25), (None, 0.75), (0.5, 0.25)]
        ),
        again=st.booleans(),
        delay=st.sampled_from([0.0, 0.0, 0.0, 6.0]),
    )
    def feedback(
        self,
        data: st.DataObject,
        said: tuple[float | None, float | None],
        again: bool,
        delay: float,
    ) -> None:
        loss, judged = said
        if self.labels is None and data.draw(st.booleans()):  # mostly without what is refused
            loss, judged = (0.0 if loss is None else loss), None
        name = data.draw(st.sampled_from(list(self.made)))
        self.clock.now += delay
        asked = [
            self.service.decisions.feedback(self.tenant, name, loss=loss, judged=judged)
            for _ in range(1 + again)
        ]
        each = self.made[name]
        # A decision that is due expires when its feedback comes; others may wait for the sweep.
        if self.expected_feedback(Made(each.record, None, "unobserved"), loss, judged) != 422:
            self.settle_overdue()
            self.expire_one(each)
        for answer in asked:
            assert status_of(answer) == self.expected_feedback(each, loss, judged)
        self.look()

    @rule(seconds=st.sampled_from([1.0, 2.0, 6.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def look(self) -> None:
        state = self.service.experiments.state(self.tenant, "one").result()
        self.expire()
        statuses = [each.status for each in self.made.values()]
        assert state.decisions == len(self.made)
        assert state.pending == statuses.count("pending")
        assert state.applied == statuses.count("applied")
        assert state.expired == statuses.count("expired")
        assert state.late == sum(each.late for each in self.made.values())
        assert state.round == self.learner.round
        assert state.estimates == tuple(self.learner.estimates())
        assert state.exploration == tuple(self.learner.exploration_probabilities())
        assert state.exploitation == tuple(self.learner.exploitation_probabilities())
        for kind, plays in (("exploit", state.plays_exploit), ("explore", state.plays_explore)):
            drawn = [getattr(each.record, kind) for each in self.made.values()]
            assert plays == tuple(map(drawn.count, ARMS))
        for name, each in self.made.items():
            record = self.service.decisions.get(self.tenant, name).result()
            assert (record.status, record.loss, record.judged) == (
                each.status,
                each.loss,
                each.judged,
            )
            assert (record.exploit, record.explore) == (each.record.exploit, each.record.explore)

    @rule()
    def archive(self) -> None:
        if len(self.made) > 8:
            self.service.experiments.archive(self.tenant, "one").result()
            self.archived = True

    @rule(cleanly=st.booleans())
    def restart(self, cleanly: bool) -> None:
        if cleanly:
            self.service.close()
        else:
            killed(self.service)
        self.service = quick_service(self.address, clock=self.clock, snapshot_every=5)

    @rule()
    def a_commit_fails(self) -> None:
        with full_disk(self.service):
            asked: list[Reply[Any]] = [
                self.service.decisions.decide(self.tenant, "one"),
                self.service.experiments.state(self.tenant, "one"),
            ]
            asked += [
                self.service.decisions.feedback(self.tenant, name, loss=0.5)
                for name in list(self.made)[:2]
            ]
            assert all(isinstance(answer.exception(), StoreError) for answer in asked)


def status_of(answer: Any) -> int:
    error = answer.exception()
    assert error is None or isinstance(error, ServiceError)
    return 200 if error is None else error.status


@pytest.mark.parametrize("labels", [None, LABELS], ids=["losses", "labels"])
@both_stores
def test_the_service_behaves_like_its_model(address: str, labels: dc.Labels | None) -> None:
    # Fewer on PostgreSQL, where a step takes longer: what is below the service is the same for both.
    examples = 15 if address.startswith("postgresql") else 60
    run_state_machine_as_test(
        lambda: ServiceMachine(address, labels),  # type: ignore[arg-type]
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
