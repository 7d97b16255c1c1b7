"""Texts and numbers that a database cannot look for: they are refused, and never fail what others do at the same time."""

import base64
import json
from functools import partial
from typing import Any

import pytest

from decoupled.client.errors import Invalid, NotFound, ServiceError, StoreError
from decoupled_serve.service.commits.replies import Reply
from decoupled_serve.service.memory.session import Reference, Session
from decoupled_serve.service.service import DecisionService
from support.stores import FTPL, both_stores, held, quick_service

UNFINDABLE: tuple[Any, ...] = ("\0", "FT\0PL", "a\ud800")


def cursor(*values: Any) -> str:
    return "~" + base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


CURSORS = {
    "-name": [cursor("-name", "a\0"), cursor("-name", "\ud800")],
    "name": [cursor("name", "\0")],
    "created_at": [
        cursor("created_at", 1.0, 10**30),
        cursor("created_at", 1.0, -(2**63)),
        cursor("created_at", float("nan"), 1),
        cursor("created_at", float("inf"), 1),
    ],
}


@pytest.fixture
def direct(address: str) -> DecisionService:
    service = quick_service(address)
    for tenant in ("shop", "bank"):
        service.experiments.put(tenant, "one", FTPL, seed=7).result()
    return service


def together(service: DecisionService, *reads: Any) -> list[Reply[Any]]:
    """Run functions that submit commands, with a decision before and after, in one transaction. The decisions succeed."""
    with held(service):
        decisions = [service.decisions.decide("shop", "one")]
        replies = [read() for read in reads]
        decisions.append(service.decisions.decide("bank", "one"))
    for each in decisions:
        assert len(each.result(60)) == 1
    return replies


@both_stores
def test_what_cannot_be_looked_for_never_reaches_the_database(direct: DecisionService) -> None:
    failures, audit = direct._commits.failures, direct.audit.read
    lists: Any = direct.listing.experiments
    reads: list[Any] = [
        partial(lists, "bank", **{name: text})
        for text in UNFINDABLE
        for name in ("policy", "prefix", "after")
    ]
    reads += [
        partial(audit, "bank", **{name: text}) for text in UNFINDABLE for name in ("subject", "action")
    ]
    reads += [
        partial(lists, "bank", after=each, sort=sort) for sort, found in CURSORS.items() for each in found
    ]
    reads += [
        partial(direct.listing.decisions, "bank", "one", after=cursor("-made_at", each))
        for each in (10**30, 2**63)
    ]

    def refused(read: Any) -> None:
        with pytest.raises(Invalid):
            read()

    together(direct, *(partial(refused, each) for each in reads))
    assert direct._commits.failures == failures


@both_stores
@pytest.mark.parametrize("value", ["\0", "\ud800", 10**30])
def test_a_value_that_a_database_cannot_take_fails_its_own_command_alone(
    direct: DecisionService, value: Any
) -> None:
    def look(session: Session) -> Any:
        column = "id" if isinstance(value, int) else "name"
        return session.store.run(f"SELECT name FROM experiments WHERE {column} = ?", (value,))

    [found] = together(direct, lambda: direct._commits.submit(look))
    error = found.exception(60)
    assert error is None or (isinstance(error, ServiceError) and not isinstance(error, StoreError))
    assert direct.ready()
    if isinstance(value, int):
        return

    def add(session: Session) -> None:  # which is found out when the rows of all commands are written
        session.record(value, "bank", "one")

    [found] = together(direct, lambda: direct._commits.submit(add))
    assert not isinstance(found.exception(60), StoreError)
    about = Reference("name", "bank", value)  # which is looked for before any command runs
    [found] = together(direct, lambda: direct._commits.submit(lambda session: session.get(about), about))
    error = found.exception(60)
    assert isinstance(error, NotFound) or type(error) is ServiceError
    assert direct.ready()
