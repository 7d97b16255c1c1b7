"""Labels of a mirror: what is kept for people, what is sent to others, and what must never be."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from decoupled.client.aio import AsyncClient
from decoupled.errors import ParameterError
from decoupled_serve.mirror import labels
from decoupled_serve.mirror.backend import Remote
from decoupled_serve.mirror.config_file import doubts, explained
from decoupled_serve.service.api.pairs import Kept
from decoupled_serve.service.service import DecisionService, open_service
from support.command_line import run
from support.dropping import Answer as Said
from support.dropping import answering
from support.http_service import served
from support.mirrors.running import RunningMirror, Start, mirror

# A copy costs a quarter by its status, three quarters by what the judge says: the explored answer is the worse one.
JUDGED = """
[mirror]
share = 1.0
[experiment]
name = "chats"
seed = 5
policy = "FTPL"
[loss]
status = 1.0
judge = { python = "functions:judge", weight = 3.0 }
"""
LABELS = '[labels]\nshare = 0.5\nfirst = 4\nredact = ["token-[0-9]+"]\n'
FUNCTIONS = """
def judge(request, served, mirrored):
    return {"preference": "exploit"}

def gold(request, served, mirrored):
    told = [request.target, served.text, mirrored.text]
    assert (served.arm, served.headers, mirrored.arm, mirrored.headers) == ("", (), "", ()), "blind"
    assert not any("token-" in each for each in told), told
    return {"preference": "explore"}

def fails(text):
    raise ValueError(text)

def shouts(text):
    return text.upper()
"""


def asked(running: RunningMirror, requests: int = 12) -> dict[str, Any]:
    """The status after some requests, when every answer is judged and with those who label."""
    for number in range(requests):
        running.http.get(f"/echo?number={number}&secret=token-{number}")

    def all_of_it(status: dict[str, Any]) -> bool:
        done = sum(status["labels"].values())
        return bool(status["queue"] == 0 and done == running.backend.wanted)

    running.settled()
    return running.until(all_of_it)


def counting(backend: Any) -> Any:
    """The backend, which counts the decisions that were judged and want a label."""
    decided, learn, wants = backend.decide, backend.learn, dict[str, bool]()
    backend.wanted = 0

    async def decide(*given: Any) -> Any:
        made = await decided(*given)
        wants.update({each.id: each.label for each in made})
        return made

    async def learned(decision: str, *given: Any) -> str:
        outcome: str = await learn(decision, *given)
        backend.wanted += wants[decision] and outcome == "applied"
        return outcome

    backend.decide, backend.learn = decide, learned
    return backend


@contextmanager
def embedded(start: Start, text: str) -> Iterator[RunningMirror]:
    (start.folder / "functions.py").write_text(FUNCTIONS)
    with start.embedded(JUDGED + text) as running:
        counting(running.backend)
        yield running


def kept(service: DecisionService) -> list[Kept]:
    return service.pairs.kept("local", "chats").result()


def decisions(service: DecisionService) -> list[Any]:
    page = service.listing.decisions("local", "chats", limit=1_000).result()
    return [each for each in page.items if each.judged is not None]


def test_what_wants_a_label_is_kept_for_people_without_what_is_private(start: Start) -> None:
    with embedded(start, LABELS) as running:
        status = asked(running, 40)
    service = open_service(start.store)
    try:
        found, made = kept(service), decisions(service)
        assert len(found) == status["labels"]["kept"] > 3
        assert sum(not each.label for each in made) > 0, "and what wants none is not kept"
        assert len(found) + status["labels"]["labelled"] == sum(each.label for each in made)
        for each in found:
            assert "token-" not in "".join(each.pair[:4])
            assert "[removed]" in each.pair.title
            assert each.pair.exploit != each.pair.explore
            assert (each.pair.low, each.pair.high, each.verdict) == (0.0, 0.75, 1.0)
        # The same answer twice is a tie, and nobody is asked.
        ties = [each.loss for each in made if each.label and each.exploit == each.explore]
        assert ties == [0.375] * status["labels"]["labelled"]
        before = {each.id for each in made if each.status == "applied"}
        pair, _ = service.pairs.lease("local", "chats", "ann").result()
        assert pair is not None
        service.pairs.label("local", "chats", "ann", pair.lease, "tie").result()
        [new] = [
            each
            for each in decisions(service)
            if each.status == "applied" and each.id not in before
        ]
        assert (new.judged, new.loss) == (0.75, 0.375)
    finally:
        service.close()
    written = [
        each
        for each in start.folder.iterdir()
        if each.suffix not in (".py", ".toml") and each.is_file()
    ]
    assert len(written) >= 2
    assert [each.name for each in written if b"token-" in each.read_bytes()] == []


def test_failed_redaction_keeps_nothing_and_counts(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with embedded(start, LABELS.replace('["token-[0-9]+"]', '"functions:fails"')) as running:
        status = asked(running)
    assert status["labels"]["redact_failed"] > 1
    assert status["labels"]["kept"] == 0
    assert not start.store.with_name("store.db-pairs").exists()
    assert caplog.text.count("labels.redact fails") == 1
    assert "token-" not in caplog.text


def test_an_error_that_is_not_the_redactions_has_a_reason_of_its_own(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(body: bytes) -> str:
        raise ZeroDivisionError("private text")

    monkeypatch.setattr(labels, "said", breaks)
    with embedded(start, LABELS) as running:
        status = asked(running)
        metrics = running.http.get(f"{running.console}/mirror/metrics").text
    assert status["labels"]["error"] > 1
    assert status["labels"]["redact_failed"] == status["labels"]["failed"] == 0
    assert (
        f'decoupled_mirror_labels_total{{reason="error"}} {status["labels"]["error"]}.0' in metrics
    )
    assert caplog.text.count("gets no label (ZeroDivisionError)") == 1
    assert "private text" not in caplog.text


def test_a_function_redacts_and_a_function_labels(start: Start) -> None:
    text = LABELS.replace('["token-[0-9]+"]', '"functions:shouts"') + 'to = "functions:gold"\n'
    with embedded(start, text) as running:
        status = asked(running)
    assert status["labels"]["labelled"] == running.backend.wanted > 1
    service = open_service(start.store)
    found = {each.loss for each in decisions(service) if each.label}
    service.close()
    assert found == {0.0}, "the true loss, where the judge said 0.75"


def test_an_address_gets_only_what_wants_a_label_and_says_it_now_or_later(start: Start) -> None:
    def respond(_: object) -> Said:
        return (200, {}, {"loss": 1.0}) if len(asked_of) % 2 == 0 else (202, {}, b"")

    with answering(respond) as (url, asked_of):
        with embedded(start, f'{LABELS}to = "{url}"\n') as running:
            status = asked(running, 20)
        got = [each.body for each in asked_of]
    service = open_service(start.store)
    made = {each.id: each for each in decisions(service)}
    later = [each["decision"] for each in got[::2]]
    assert {made[each].status for each in later} == {"pending"}
    assert service.decisions.label("local", later[0], loss=0.75).result().loss == 0.75
    service.close()
    assert status["labels"]["later"] == len(later)
    assert all(made[each["decision"]].label for each in got)
    assert {made[each["decision"]].loss for each in got[1::2]} == {0.75}
    assert "token-" not in json.dumps(got)
    assert {(each["served"]["arm"], tuple(each["mirrored"]["headers"])) for each in got} == {
        ("", ())
    }


def test_a_service_elsewhere_keeps_them(start: Start) -> None:
    (start.folder / "functions.py").write_text(FUNCTIONS)
    with served(start.folder) as service:
        config = start.config(f'service = "{service.url}"\n{JUDGED}{LABELS}')
        with mirror(config, counting(Remote(AsyncClient(service.url), config))) as running:
            status = asked(running, 20)
        assert len(kept(service.direct)) == status["labels"]["kept"] > 1
        assert service.http.get("/v1/experiments/chats").json()["labels"]["first"] == 4


def test_rejudge_says_how_often_judges_agree_with_people(start: Start) -> None:
    with embedded(start, LABELS) as running:
        asked(running, 30)
    service = open_service(start.store)
    found = len(kept(service))
    for number in range(
        found
    ):  # people mostly prefer the explored answer, where the judge said the other
        pair, _ = service.pairs.lease("local", "chats", "ann").result()
        assert pair is not None
        store: Any = service.pairs._opened
        row = store.run("SELECT explored_first FROM pairs WHERE lease = ?", (pair.lease,))
        choice: Any = "first" if row[0][0] else "second"
        service.pairs.label(
            "local", "chats", "ann", pair.lease, "tie" if number == 0 else choice
        ).result()
    service.close()
    other = start.folder / "other.toml"
    other.write_text(
        (start.folder / "mirror.toml").read_text().replace("functions:judge", "functions:gold")
    )
    words = ["rejudge", str(start.folder / "mirror.toml"), "--store", str(start.store)]
    done = run(*words, "--judge", str(other))
    assert done.exit_code == 0, done.output
    _, first, new, *_ = done.output.splitlines()
    assert "0.00 (0.00 to" in first
    assert f"of {found}" in first
    share = (found - 1) / found
    assert f"{share:.2f} (" in new
    assert new.rstrip().endswith(" 0")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('to = "somebody"', "labels.to"),
        ('redact = ["("]', "is not a pattern"),
        ("share = 0.0", "share = 0.0"),
        ("keep_days = 0", "labels.keep_days"),
        ("first = -1", "labels.first"),
    ],
)
def test_what_is_refused(start: Start, line: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        start.config(f"[labels]\n{line}\n")


def test_a_sink_cannot_show_two_answers_and_a_check_says_what_is_kept(start: Start) -> None:
    with pytest.raises(ParameterError, match="does not see"):
        start.config("sink = true\n[labels]\n")
    config = start.config("[labels]\n")
    assert "labels: 10% and the first 200, by console, kept for 7 days" in explained(config)
    assert any(each.startswith("labels.redact: is not set") for each in doubts(config))
    assert not any("redact" in each for each in doubts(start.config(LABELS)))
