"""Lists of experiments and decisions: pages, filters and sorting; what a database cannot look for is refused and fails nobody else."""

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from decoupled.client.errors import Invalid, NotFound, ServiceError, StoreError
from decoupled_serve.service.api import listing
from decoupled_serve.service.api.listing import ExperimentSort
from decoupled_serve.service.commits.replies import Reply
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.memory.session import Reference, Session
from decoupled_serve.service.service import DecisionService
from support.stores import FTPL, both_stores, held, quick_service, started
from support.waiting import Clock

MOST_PAGES = 100
EXP3 = Settings({"name": "Exp3"}, ("a", "b"))


def items(read: Callable[..., Reply[Any]], *place: str, limit: int, **wanted: Any) -> list[Any]:
    """What is on all pages of a list."""
    found, after = [], None
    for _ in range(MOST_PAGES):
        page = read(*place, limit=limit, after=after, **wanted).result()
        assert len(page.items) <= limit
        found += page.items
        after = page.next
        if after is None:
            return found
    raise AssertionError("it does not end")


def names(service: DecisionService, limit: int = 2, **wanted: Any) -> list[str]:
    return [
        each.name for each in items(service.listing.experiments, "local", limit=limit, **wanted)
    ]


def seqs(service: DecisionService, limit: int = 3, **wanted: Any) -> list[int]:
    found = items(service.listing.decisions, "local", "x", limit=limit, **wanted)
    return [int(each.id.split("-")[1]) for each in found]


@both_stores
def test_experiments_are_filtered_and_sorted(address: str, clock: Clock) -> None:
    service = quick_service(address, clock=clock, delete_after=0.0)
    for name, settings in (("b", FTPL), ("a.2", EXP3), ("a.1", FTPL), ("c", EXP3), ("gone", FTPL)):
        service.experiments.put("local", name, settings).result()
        clock.now += name != "a.2"  # two of the same age
    service.experiments.put("shop", "theirs", FTPL).result()
    for name in ("c", "gone"):
        service.experiments.archive("local", name).result()
    service.deletion.delete("local", "gone").result()
    orders: dict[ExperimentSort, list[str]] = {
        "name": ["a.1", "a.2", "b", "c"],
        "-name": ["c", "b", "a.2", "a.1"],
        "created_at": ["b", "a.2", "a.1", "c"],
        "-created_at": ["c", "a.1", "a.2", "b"],
    }
    for sort, order in orders.items():
        for limit in (1, 2, 3, 10):
            assert names(service, limit, sort=sort) == order, (sort, limit)
    assert names(service, status="archived") == ["c"]
    assert names(service, status="active", sort="-name") == ["b", "a.2", "a.1"]
    assert names(service, policy="Exp3") == ["a.2", "c"]
    assert names(service, prefix="a.") == ["a.1", "a.2"]
    assert names(service, prefix="a.", policy="Exp3", status="active") == ["a.2"]
    assert names(service, prefix="zzz") == []


def test_a_page_continues_where_the_last_one_ended_whatever_is_added(
    file: str, clock: Clock
) -> None:
    service = quick_service(file, clock=clock)
    for name in ("b", "d", "f"):
        service.experiments.put("local", name, FTPL).result()
    first = service.listing.experiments("local", limit=2, sort="-name").result()
    service.experiments.put("local", "e", FTPL).result()
    service.experiments.put("local", "g", FTPL).result()
    rest = service.listing.experiments("local", limit=2, sort="-name", after=first.next).result()
    assert [each.name for each in (*first.items, *rest.items)] == ["f", "d", "b"]


@both_stores
def test_decisions_are_filtered_and_sorted(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SCANNED", 4)  # many pages have nothing
    service = started(address, name="x", tenant="local")
    expected: list[tuple[int, str, str]] = []
    for n in range(12):
        mode: Any = "exploit" if n % 4 == 3 else "both"
        tags = {"country": "de" if n < 6 else "fr", "odd.one": str(n % 2)}
        [each] = service.decisions.decide("local", "x", mode=mode, tags=tags).result()
        status = "unobserved" if mode == "exploit" else "pending"
        if n % 4 == 1:
            service.decisions.feedback("local", each.id, loss=0.5).result()
            status = "applied"
        expected.append((int(each.id.split("-")[1]), status, tags["country"] + tags["odd.one"]))
    everything = [seq for seq, _, _ in expected]
    for limit in (1, 3, 50):
        assert seqs(service, limit, sort="made_at") == everything
        assert seqs(service, limit) == everything[::-1]
    for status in ("pending", "applied", "unobserved", "expired"):
        assert seqs(service, status=status, sort="made_at") == [
            s for s, is_, _ in expected if is_ == status
        ]
    assert seqs(service, mode="exploit", sort="made_at") == [
        s for s, is_, _ in expected if is_ == "unobserved"
    ]
    wanted = {"country": "de", "odd.one": "1"}
    assert seqs(service, tags=wanted, sort="made_at") == [
        s for s, _, tag in expected if tag == "de1"
    ]
    assert seqs(service, tags={"country": "it"}) == []
    [applied, *_] = service.listing.decisions("local", "x", status="applied").result().items
    assert applied == service.decisions.get("local", applied.id).result(), "the same as by its id"


def test_a_cursor_of_something_else_is_refused(file: str) -> None:
    service = started(file, name="x", tenant="local")
    for after in ("a", "~", "~bm9wZQ", "~WyJuYW1lIiwxXQ", "~W10", "~\x00"):
        with pytest.raises(Invalid, match="after ="):
            service.listing.experiments("local", after=after, sort="-name")
        with pytest.raises(Invalid, match="after ="):
            service.listing.decisions("local", "x", after=after)
    with pytest.raises(NotFound):
        service.listing.decisions("local", "y").result()


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
        partial(audit, "bank", **{name: text})
        for text in UNFINDABLE
        for name in ("subject", "action")
    ]
    reads += [
        partial(lists, "bank", after=each, sort=sort)
        for sort, found in CURSORS.items()
        for each in found
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
def test_a_value_no_database_takes_fails_its_command_alone(
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

    def add(
        session: Session,
    ) -> None:  # which is found out when the rows of all commands are written
        session.record(value, "bank", "one")

    [found] = together(direct, lambda: direct._commits.submit(add))
    assert not isinstance(found.exception(60), StoreError)
    about = Reference("name", "bank", value)  # which is looked for before any command runs
    [found] = together(
        direct, lambda: direct._commits.submit(lambda session: session.get(about), about)
    )
    error = found.exception(60)
    assert isinstance(error, NotFound) or type(error) is ServiceError
    assert direct.ready()
