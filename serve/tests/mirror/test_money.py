"""A budget of money: it is never exceeded, whatever prices say, whatever is changed, and whenever a mirror is killed."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.base import write_atomically
from decoupled.errors import ParameterError
from decoupled_serve.mirror.config import CopyConfig, JudgeConfig, LossConfig
from decoupled_serve.mirror.config_file import doubts, explained
from decoupled_serve.mirror.copies import Copies, Copy
from decoupled_serve.mirror.counts import MirrorCounts
from decoupled_serve.mirror.exchange import Answer, Request, Unreadable
from decoupled_serve.mirror.judges import CopyLoss, Judge, Judged, Trouble
from decoupled_serve.mirror.spending import Spending, stated_cost
from support.mirrors.killed import Killings, kill_mirrors
from support.mirrors.running import ALL, Fixed, Start, commanded, mirror
from support.waiting import Clock
from support.wire import on_loop

DAY = 86_400.0
ASKED = Request("GET", "/")


# Killed at any moment


def check(killings: Killings, runs: int) -> None:
    """Nothing exceeds what is allowed, and enough was spent for this to mean something."""
    assert len(killings.spent) == runs
    exceeded = [
        pair for pair in zip(killings.spent, killings.allowed, strict=True) if pair[0] > pair[1]
    ]
    assert exceeded == []
    assert killings.spent[-1] > 0.3 * killings.allowed[-1], "the budget was nearly reached"
    assert killings.paid_calls > 5 * runs


@pytest.mark.slow
def test_a_mirror_that_is_killed_has_never_spent_more_than_its_budget(tmp_path: Path) -> None:
    check(kill_mirrors(tmp_path, 8, seed=1), 8)


@pytest.mark.exhaustive
def test_a_mirror_that_is_killed_200_times_has_never_spent_more_than_its_budget(
    tmp_path: Path,
) -> None:
    check(kill_mirrors(tmp_path, 200, seed=7), 200)


@on_loop
async def test_what_is_set_aside_is_on_disk_before_anything_is_sent(tmp_path: Path) -> None:
    """At the moment of each call, another program that reads the file would count it at its maximum."""
    file = tmp_path / "spent"
    spending = Spending(dc.Budget(cost=0.5, total=100.0), ["a"], file, judge=0.25)
    on_disk = list[float]()

    def note() -> None:
        on_disk.append(float(json.loads(file.read_text())["spent"]))

    class Arm:
        async def copy(self, request: Request) -> Answer:
            note()
            return Answer("a", 200, cost=0.125)

    class Noting(Judge):
        async def judge(
            self, decision: str, request: Request, served: Any, mirrored: Answer
        ) -> Judged:
            note()
            return Judged(0.5, cost=0.125)

    config = JudgeConfig(python="a:b")
    copies = Copies(
        {"a": Arm()},
        CopyConfig(),
        CopyLoss(LossConfig(judge=config), Noting(config)),
        Fixed(),
        MirrorCounts(),
        spending=spending,
    )
    for number in range(5):
        assert copies.reserve() is None
        copies.start(Copy(f"d{number}", "a", ASKED, ASKED, Answer("b", 200)))
        while len(copies):
            await asyncio.sleep(0)
    assert on_disk[::2] == [0.75 + 0.25 * number for number in range(5)]
    assert float(spending.meter.spent) == 1.25
    spending.close()
    again = Spending(dc.Budget(cost=0.5, total=100.0), ["a"], file, judge=0.25)
    assert float(again.meter.spent) == 1.25
    again.close()


@on_loop
async def test_copies_at_once_share_their_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = list[object]()

    def counted(*arguments: Any, **options: Any) -> None:
        writes.append(arguments)
        write_atomically(*arguments, **options)

    monkeypatch.setattr(f"{Spending.__module__}.write_atomically", counted)
    spending = Spending(dc.Budget(cost=1, total=1_000), ["a"], tmp_path / "spent")

    async def reserved() -> None:
        assert spending.reserve(["a"]) is not None
        await spending.secured()

    await asyncio.gather(*(reserved() for _ in range(500)))
    assert 1 <= len(writes) <= 2
    await spending.secured()
    assert len(writes) <= 2, "nothing new is to be written"
    free = Spending(dc.Budget(share=0.5), ["a"], tmp_path / "free", seed=1)
    for _ in range(20):
        free.reserve(["a"])
        await free.secured()
    assert len(writes) <= 2, "a budget without money waits for no disk"


@on_loop
async def test_nothing_is_sent_if_it_cannot_be_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    spending = Spending(dc.Budget(cost=1, total=3), ["a"], tmp_path / "spent")
    sent, counts = list[Request](), MirrorCounts()

    class Arm:
        async def copy(self, request: Request) -> Answer:
            sent.append(request)
            return Answer("a", 200, cost=1.0)

    backend = Fixed()
    copies = Copies(
        {"a": Arm()},
        CopyConfig(),
        CopyLoss(LossConfig(status=1.0)),
        backend,
        counts,
        spending=spending,
    )
    monkeypatch.setattr(f"{Spending.__module__}.write_atomically", full)
    assert copies.reserve() is None
    copies.start(Copy("d", "a", ASKED, ASKED, None))
    while len(copies):
        await asyncio.sleep(0)
    assert (sent, counts.dropped["unsaved"], backend.forgotten) == ([], 1, ["d"])
    assert spending.meter.spent == 0
    monkeypatch.undo()
    assert copies.reserve() is None
    copies.start(Copy("e", "a", ASKED, ASKED, None))
    while len(copies):
        await asyncio.sleep(0)
    assert (len(sent), list(backend.losses)) == (1, ["e"])
    spending.close()


# Two programs


def test_two_programs_cannot_spend_the_same_budget(tmp_path: Path) -> None:
    file, budget = tmp_path / "spent", dc.Budget(cost=1, total=3)
    spending = Spending(budget, ["a"], file)
    with pytest.raises(ParameterError, match="another program counts its spending in this file"):
        Spending(budget, ["a"], file)
    code = (
        "import sys, decoupled as dc; from pathlib import Path\n"
        "from decoupled_serve.mirror.spending import Spending\n"
        "spending = Spending(dc.Budget(cost=1, total=3), ['a'], Path(sys.argv[1]))\n"
        "spending.reserve(['a']); spending.save(); print('held', flush=True); sys.stdin.read()"
    )
    spending.close()
    words = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(
            ParameterError, match="another program counts its spending in this file"
        ):
            Spending(budget, ["a"], file)
        other.kill()
    again = Spending(budget, ["a"], file)
    assert again.meter.spent == 1, "what a killed program had set aside counts"
    again.close()


# What is changed, and when


def test_changes_of_a_budget_restarts_and_clocks_forget_nothing(tmp_path: Path) -> None:
    """A budget of 5 a day spends 5 a day, however its file, its length and the clock change within the day."""
    file, clock = tmp_path / "spent", Clock()
    clock.now = 20 * DAY + 50_000.0
    spent = 0

    def spend(allowance: tuple[float, float]) -> int:
        spending = Spending(dc.Budget(cost=1, allowance=allowance), ["a"], file, clock=clock)
        asides = [spending.reserve(["a"]) for _ in range(9)]
        spending.save()
        left = spending.shown()["left"]["allowance"]
        assert left <= allowance[0]
        spending.close()
        return sum(each is not None for each in asides)

    for seconds, passes in (
        (DAY, 0.0),
        (DAY / 2, 1.0),
        (DAY, -3_600.0),
        (7 * DAY, 10.0),
        (DAY, -DAY),
        (DAY, 0.0),
    ):
        clock.now += passes
        spent += spend((5, seconds))
    assert spent == 5
    clock.now = 20 * DAY + 50_000.0
    assert spend((7, DAY)) == 2, "a higher cap continues from there"
    assert spend((3, DAY)) == 0
    clock.now = 21 * DAY
    assert spend((5, DAY)) == 5, "another day"
    clock.now -= 1.0
    assert spend((5, DAY)) == 0, "a clock that goes back begins no period again"


def test_what_is_reserved_in_a_period_is_paid_in_it(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = 30 * DAY - 1.0
    budget = dc.Budget(cost=1, allowance=(2, DAY))
    spending = Spending(budget, ["a"], tmp_path / "spent", clock=clock)
    late = spending.reserve(["a"])
    assert late is not None
    clock.now += 2.0
    today = [spending.reserve(["a"]) for _ in range(3)]
    assert [each is None for each in today] == [False, False, True]
    spending.end(late, "a", 0.0)
    assert spending.reserve(["a"]) is None, "what yesterday did not spend is not today's"
    assert today[0] is not None
    spending.end(today[0], "a", 0.0)
    assert spending.reserve(["a"]) is not None
    spending.close()


# Prices that say nothing

PRICED = "cost_header = 'X-Cost'\nprices = { prompt_tokens = 1.0, completion_tokens = 10.0 }\nceiling = 0.25\n"
GOOD = '{"usage": {"prompt_tokens": 100000, "completion_tokens": 1000}}'
SILENT = {
    "no usage": "{}",
    "null": '{"usage": null}',
    "an empty one": '{"usage": {}}',
    "one field of two": '{"usage": {"prompt_tokens": 10}}',
    "negative": '{"usage": {"prompt_tokens": -100000, "completion_tokens": 1}}',
    "not a number": '{"usage": {"prompt_tokens": NaN, "completion_tokens": 1}}',
    "infinite": '{"usage": {"prompt_tokens": Infinity, "completion_tokens": 1}}',
    "401 digits": '{"usage": {"prompt_tokens": %s, "completion_tokens": 1}}' % ("9" * 401),
    "300 digits": '{"usage": {"prompt_tokens": %s, "completion_tokens": 1}}' % ("9" * 300),
    "true": '{"usage": {"prompt_tokens": true, "completion_tokens": false}}',
    "a text": '{"usage": {"prompt_tokens": "1", "completion_tokens": "1"}}',
    "a list": '{"usage": {"prompt_tokens": [1], "completion_tokens": {}}}',
    "not JSON": "priceless",
}
HEADERS = ("-0.01", "nan", "-inf", "1e999", "9" * 401, "", "free", "0x10", "True")


@contextmanager
def scripted(answers: list[tuple[str, str | None]]) -> Iterator[str]:
    """An arm that gives these answers, bodies and cost headers, in turn."""
    left = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body, header = next(left) if self.headers.get("X-Mirrored") else ("{}", None)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            if header is not None:
                self.send_header("X-Cost", header)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_price_that_nobody_can_read_counts_as_the_declared_maximum(start: Start) -> None:
    """Without usage, with numbers that no call can have, and in headers: none is free, and none blocks the budget for ever."""
    answers: list[tuple[str, str | None]] = [(body, None) for body in SILENT.values()]
    answers += [("{}", header) for header in HEADERS]
    limits = "[budget]\ntotal = 100.0\n"
    with scripted([(GOOD, None), *answers, ("{}", "0.125")]) as url:
        file = start.file(
            f'{ALL}headers = {{ X-Mirrored = "1" }}\n{limits}', stable=PRICED, next=PRICED
        )
        lines = file.read_text()
        file.write_text(lines.replace(start.arms["next"].url, url))
        with mirror(file, Fixed()) as running:
            costs, before = list[float](), 0.0
            for _ in range(len(answers) + 2):
                running.http.get("/x")
                spent = running.settled()["budget_spent"]["total"]
                costs.append(round(spent - before, 9))
                before = spent
    assert costs == [0.11, *[0.25] * len(answers), 0.125]


def test_a_field_inside_another_may_be_left_out() -> None:
    prices = {"prompt_tokens": 1e6, "details.audio": 1e6}
    cached = b'{"usage": {"prompt_tokens": 2, "details": {"audio": 3}}}'
    assert stated_cost(Answer("a", 200, (), cached), None, prices) == 5.0
    assert (
        stated_cost(Answer("a", 200, (), b'{"usage": {"prompt_tokens": 2}}'), None, prices) == 2.0
    )
    wrong = b'{"usage": {"prompt_tokens": 2, "details": {"audio": -3}}}'
    with pytest.raises(Unreadable, match=r"details\.audio"):
        stated_cost(Answer("a", 200, (), wrong), None, prices)


class Failing(Judge):
    """Fails for its first calls, at an unknown price."""

    def __init__(self, failures: int, attempts: int) -> None:
        super().__init__(JudgeConfig(python="a:b", attempts=attempts, ceiling=0.5))
        self._left = failures
        self.calls = 0

    async def _asked(
        self, decision: str, request: Request, served: Any, mirrored: Answer
    ) -> Judged:
        self.calls += 1
        self._left -= 1
        if self._left >= 0:
            raise Trouble("status 503", transient=True)
        return Judged(0.5, cost=0.25)


async def judged(judge: Failing, total: float, file: Path) -> Spending:
    """What was spent for a copy that costs 0.25 and its judgement."""
    spending = Spending(dc.Budget(cost=0.25, total=total), ["a"], file, judge=0.5)

    class Arm:
        async def copy(self, request: Request) -> Answer:
            return Answer("a", 200, cost=0.25)

    loss = CopyLoss(LossConfig(judge=JudgeConfig(python="a:b")), judge)
    copies = Copies({"a": Arm()}, CopyConfig(), loss, Fixed(), MirrorCounts(), spending=spending)
    assert copies.reserve() is None
    copies.start(Copy("d", "a", ASKED, ASKED, Answer("b", 200)))
    while len(copies):
        await asyncio.sleep(0.001)
    return spending


@on_loop
async def test_every_attempt_of_a_judge_is_paid_and_none_exceeds_the_budget(tmp_path: Path) -> None:
    judge = Failing(failures=1, attempts=2)
    spending = await judged(judge, 10.0, tmp_path / "enough")
    assert (judge.calls, float(spending.meter.spent)) == (2, 0.25 + 0.5 + 0.25)
    assert spending.meter.above == 0, "what was set aside in between is declared as well"
    spending.close()
    judge = Failing(failures=1, attempts=2)
    spending = await judged(judge, 1.0, tmp_path / "too little")
    assert (judge.calls, float(spending.meter.spent)) == (1, 0.25 + 0.5), (
        "no money for another attempt"
    )
    spending.close()


# A configuration without a maximum

JUDGE = '[loss.judge]\nmodel = "m"\nurl = "http://127.0.0.1:9"\n'


def test_a_configuration_without_a_maximum_is_refused_and_the_check_says_what_is_set_aside(
    start: Start,
) -> None:
    limits = "[budget]\nallowance = [5, 86400]\n"
    prices = "prices = { prompt_tokens = 1.0 }\n"
    with pytest.raises(
        ParameterError, match="arm 'next' has neither ceiling nor cost; give it ceiling"
    ):
        start.config(limits, stable=PRICED, next=prices)
    with pytest.raises(ParameterError, match="judge has neither ceiling nor cost; give it ceiling"):
        start.config(f"{limits}{JUDGE}{prices}", stable=PRICED, next=PRICED)
    config = start.config(
        f"{limits}{JUDGE}ceiling = 0.5\norder = 'both'\n", stable=PRICED, next=PRICED
    )
    [line] = [each for each in explained(config).splitlines() if each.startswith("budget: ")]
    assert "at most 5 in 86400 s, kept in mirror-spent.jsonl" in line
    assert "0.25 is set aside for a copy and 1 for its judge" in line
    free = start.config(
        f'{limits}[loss.judge]\nurl = "http://127.0.0.1:9"\n', stable=PRICED, next=PRICED
    )
    assert any("loss.judge: has neither ceiling nor cost" in each for each in doubts(free))


@pytest.mark.slow
def test_a_second_mirror_of_the_same_budget_is_refused(start: Start) -> None:
    file = start.file(f"{ALL}[budget]\ntotal = 5.0\n", stable=PRICED, next=PRICED)
    with commanded(file):
        second = subprocess.run(
            [sys.executable, "-m", "decoupled", "mirror", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode != 0
    assert "another program counts its spending in this file" in second.stderr
