"""Labels in the service: judged and labelled exactly once, late, missing or overdue, and replayed bit for bit."""

import random
from dataclasses import replace
from typing import Any

import decoupled as dc
from decoupled_serve.service.experiment.records import DecisionRecord, Settings
from decoupled_serve.service.service import DecisionService
from support.stores import Clock, both_stores, faults, killed, quick_service, started

RULES = dc.Labels(share=0.5, first=3, deadline=20, missing=0.25)
LABELLED = Settings(dc.Ladder().to_dict(), ("a", "b"), (0.0, 10.0), labels=RULES)


def decided(service: DecisionService, **options: Any) -> DecisionRecord:
    return service.decisions.decide("me", "one", **options).result()[0]


def given(service: DecisionService, made: DecisionRecord, **what: Any) -> DecisionRecord:
    return service.decisions.feedback("me", made.id, **what).result()


def labelled(service: DecisionService, made: DecisionRecord, **what: Any) -> DecisionRecord:
    return service.decisions.label("me", made.id, **what).result()


@both_stores
def test_it_is_a_learner_with_labels_and_a_restart_changes_nothing(address: str, clock: Clock) -> None:
    """Judged at once or late; labels in the same call, late, forgotten or overdue; judgements that never come."""
    settings = replace(LABELLED, deadline=30.0, expired_loss=5.0)
    service = started(address, settings, clock=clock, snapshot_every=37)
    twin = dc.Ladder().start(["a", "b"], seed=7, loss_range=(0, 10), labels=RULES)
    luck = random.Random(5)
    waiting: list[tuple[DecisionRecord, dc.Decision]] = []
    for number in range(300):
        mirrored, made = twin.decide(), decided(service)
        assert (made.exploit, made.explore, made.label) == (
            mirrored.exploit,
            mirrored.explore,
            mirrored.label,
        )
        assert mirrored.asked is not None
        assert made.label_probability == mirrored.asked.rho
        judged, label = luck.uniform(0, 10), luck.uniform(0, 10)
        what: dict[str, Any] = {"judged": judged, "position": luck.choice([None, -1.0, 1.0])}
        if made.label and number % 3 == 0:
            what["loss"] = label
        twin.observe(mirrored, **what)
        assert given(service, made, **what).judged == judged
        if made.label and number % 3:
            waiting.append((made, mirrored))
        if len(waiting) > 5:
            late, its_twin = waiting.pop(luck.randrange(6))
            if its_twin in twin.pending:
                labelled(service, late, loss=label)
                twin.observe(its_twin, loss=label)
        if number in (100, 200):
            service.close() if number == 100 else killed(service)
            service = quick_service(address, clock=clock, snapshot_every=37)
    state = service.experiments.state("me", "one").result()
    assert state.estimates == tuple(twin.estimates())
    queue = service.decisions.awaiting_labels("me", "one").result()
    assert twin.labels == (queue.used, queue.missing, queue.awaiting, queue.lam)
    assert queue.missing > 5
    assert faults(address, clock) == []
