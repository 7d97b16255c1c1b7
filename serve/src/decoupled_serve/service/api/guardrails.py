"""The commands that change the guardrails and the budget of an experiment."""

import json
from collections.abc import Mapping
from typing import Any

from decoupled.learner import Budget

from ..experiment.guarding import changed_guardrails, checked_budget
from ..experiment.live import LiveExperiment
from ..memory.session import Reference, Session


def change_guardrails(session: Session, about: Reference, changes: Mapping[str, Any]) -> LiveExperiment:
    """Change some guardrails; those that are not named stay as they are."""
    running = session.get(about)
    now = running.learner.guardrails
    rules = changed_guardrails(now, changes, running.arms, running.coupled)
    if rules != now:
        _log(session, running, "guardrails", rules.to_dict())
        session.record(
            "guardrails.change", running.tenant, running.name, old=now.to_dict(), new=rules.to_dict()
        )
    return running


def set_budget(session: Session, about: Reference, values: Mapping[str, Any]) -> LiveExperiment:
    """Set the whole budget; without a value there is no limit of that kind."""
    running = session.get(about)
    budget = checked_budget(values, running.arms, running.coupled)
    now = Budget() if running.meter is None else running.meter.budget
    if budget != now:
        _log(session, running, "budget", budget.to_dict())
        session.record("budget.set", running.tenant, running.name, old=now.to_dict(), new=budget.to_dict())
    return running


def _log(session: Session, running: LiveExperiment, kind: str, values: dict[str, Any]) -> None:
    content = json.dumps(values, sort_keys=True, allow_nan=False)
    session.append(running, running.change(kind, content, running.now(session.clock())))
    session.store.update(running.id, **{kind: content})
