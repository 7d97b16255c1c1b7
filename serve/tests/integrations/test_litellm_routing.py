"""What the plug-in for LiteLLM does, with a router that is made up; LiteLLM is not needed."""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import decoupled as dc
from decoupled.client.aio import AsyncClient
from decoupled.client.exchange import Retries
from decoupled.errors import MissingExtraError, ParameterError
from decoupled_serve.litellm import deciding, shadow_arm
from decoupled_serve.litellm.deciding import InProcess, OnService
from decoupled_serve.litellm.routing import Mark, Routing, refuse_own_judge
from decoupled_serve.mirror.backend import UNKNOWN, Traits
from decoupled_serve.mirror.backend import Routing as Decision
from decoupled_serve.mirror.config import JudgeConfig, LossConfig, TermConfig
from decoupled_serve.mirror.exchange import Answer, Request
from decoupled_serve.mirror.judges import Judge, Judged
from decoupled_serve.mirror.judging import judge_of
from decoupled_serve.mirror.spending import Spending
from support.http_service import served as http_service
from support.stub_models import stub_models
from support.wire import on_loop

ARMS = ["small", "large"]
HI = [{"role": "user", "content": "hi"}]
SERVED = Answer("small", 200, cost=0.5, duration=1.0, latency=1.0)
Asked = list[dict[str, Any]]


class Whole:
    """An answer like LiteLLM's."""

    _hidden_params = {"response_cost": 0.25}  # noqa: RUF012

    def model_dump_json(self) -> str:
        return '{"text": "ok"}'


class MadeUpRouter:
    """Notes what it is asked, and which arm the shadow must reach."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.asked: Asked = []
        self._fails = fails

    async def acompletion(self, **arguments: Any) -> Whole:
        shadow = shadow_arm.SHADOW.get()
        assert shadow is not None
        self.asked.append({"arm": shadow.arm, **arguments})
        if self._fails is not None:
            raise self._fails
        return Whole()

    aresponses = acompletion


class Alternating:
    """Exploits small and explores large, and notes what it learns; or explores what it is told."""

    def __init__(self, explore: str = "large", exploit: str = "small") -> None:
        self.learned: list[tuple[str, str, float]] = []
        self.drawn: list[tuple[str, str | None]] = []
        self.contexts: list[dict[str, Any] | None] = []
        self.forgotten: list[str] = []
        self._explore, self._exploit = explore, exploit

    async def draw(self, mode: str, available: Any, about: Traits) -> Decision | None:
        self.drawn.append((mode, about.key))
        self.contexts.append(about.context)
        return Decision(
            f"d{len(self.drawn)}", self._exploit, self._explore if mode == "both" else None
        )

    async def learn(
        self,
        decision: str,
        arm: str,
        loss: float,
        position: float | None = None,
        cost: float | None = None,
    ) -> str:
        self.learned.append((decision, arm, loss))
        return "applied"

    def forget(self, decision: str) -> None:
        self.forgotten.append(decision)


class Noting(Judge):
    """Gives one verdict, and notes what it is shown."""

    def __init__(self) -> None:
        super().__init__(JudgeConfig(python="a:b"))
        self.shown: list[tuple[Request, Answer, Answer]] = []

    async def judge(self, decision: str, request: Request, served: Any, mirrored: Answer) -> Judged:
        self.shown.append((request, served, mirrored))
        return Judged(0.25)


class Group:
    """A model group whose router, decider and judge are made up."""

    def __init__(
        self, decider: Any = None, *, fails: Exception | None = None, **options: Any
    ) -> None:
        loss = options.pop("loss", None) or LossConfig(judge=JudgeConfig(python="a:b"))
        budget = options.pop("budget", None) or dc.Budget()
        self.router, self.judge = MadeUpRouter(fails), options.pop("judge", None) or Noting()
        self.decider = Alternating() if decider is None else decider
        arms = [shadow_arm.ShadowArm(name, "chat", lambda: self.router, 5.0) for name in ARMS]
        self.routing = Routing(
            arms, self.decider, loss, self.judge, Spending(budget, ARMS), **options
        )

    async def serve(
        self,
        request: Any = None,
        messages: Any = HI,
        target: str = shadow_arm.CHAT,
        by: Answer = SERVED,
    ) -> str:
        arm, mark = await self.routing.choose(request or {}, messages, ARMS)
        self.routing.served(mark, target, lambda: by)
        return arm

    async def settled(self) -> None:
        while self.routing.copies._running:
            await asyncio.sleep(0.001)

    def run(self, steps: Awaitable[Any]) -> Any:
        async def all_of_it() -> Any:
            found = await steps
            await self.settled()
            return found

        return asyncio.run(all_of_it())


def test_a_shadow_is_sent_judged_and_learned() -> None:
    group = Group()
    request = {"temperature": 0.2, "api_key": "k", "user": "ann", "stream": True, "metadata": {}}
    assert group.run(group.serve(request)) == "small"
    [asked] = group.router.asked
    assert (asked["arm"], asked["model"], asked["temperature"]) == ("large", "chat", 0.2)
    assert (asked["stream"], asked["num_retries"], asked["disable_fallbacks"]) == (False, 0, True)
    assert not {"api_key", "user", "extra_headers"} & asked.keys()
    assert group.decider.learned == [("d1", "large", 0.25)]
    [(shown, _, mirrored)] = group.judge.shown
    assert (shown.json()["messages"], mirrored.cost, mirrored.json()) == (HI, 0.25, {"text": "ok"})


class Unwritable(Whole):
    """An answer of which LiteLLM cannot write JSON."""

    def model_dump_json(self) -> str:
        raise ValueError("private text")


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0])
def test_a_shadow_without_a_price_that_is_one_has_failed_and_is_paid_as_declared(
    cost: float,
) -> None:
    group = Group(Alternating(explore="small"), budget=dc.Budget(cost=0.25, total=1.0))
    group.run(group.serve(by=replace(SERVED, cost=cost)))
    assert group.decider.learned == [("d1", "small", 1.0)]
    assert group.routing.counts.unreadable == {"price": 1}


def test_a_shadow_that_cannot_be_read_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    group = Group()

    async def unwritable(**arguments: Any) -> Whole:
        return Unwritable()

    group.router.acompletion = unwritable  # type: ignore[method-assign]
    group.run(group.serve())
    assert group.decider.learned == [("d1", "large", 1.0)]
    assert group.routing.counts.unreadable == {"error": 1}
    assert "private text" not in caplog.text


@pytest.mark.parametrize(("explore", "learned"), [("small", 1.0), ("large", 0.25)])
def test_a_served_answer_that_cannot_be_read_has_failed(explore: str, learned: float) -> None:
    """It is the explored arm's own fault, or it is not."""
    group = Group(Alternating(explore=explore))

    async def serve() -> None:
        _, mark = await group.routing.choose({}, HI, ARMS)
        answer = partial(shadow_arm.answer_of, "small", Unwritable(), 1.0)
        group.routing.served(mark, shadow_arm.CHAT, answer, "small")

    group.run(serve())
    assert group.decider.learned == [("d1", explore, learned)]
    assert group.decider.forgotten == []
    assert group.routing.counts.unreadable == {"error": 1}


def test_a_model_judges_shadows_and_its_failures_are_counted(tmp_path: Path) -> None:
    with stub_models() as models:
        models.says["judge"] = lambda body: '{"better": "first"}'
        settings = {
            "model": "judge",
            "url": models.url,
            "order": "both",
            "attempts": 1,
            "cost": 0.1,
        }
        group = Group(
            loss=LossConfig(judge=JudgeConfig.model_validate(settings)),
            judge=(judge := judge_of(JudgeConfig.model_validate(settings), tmp_path)),
            budget=dc.Budget(cost=1.0, total=10.0),
        )

        async def steps() -> None:
            await group.serve()
            await group.settled()
            models.failing.add("judge")
            await group.serve()
            await group.settled()
            await judge.close()

        group.run(steps())
    counts = group.routing.counts
    assert group.decider.learned == [("d1", "large", 0.5)]
    assert (counts.judge.position, dict(counts.judge.failures)) == (1.0, {"status 500": 1})
    assert (counts.dropped["judge_failed"], counts.judge.asked) == (1, 2)
    assert group.routing.spent == pytest.approx(0.25 + 2 * 0.1 + 0.25 + 0.1), (
        "two shadows and three calls"
    )


def test_a_model_is_no_judge_of_its_own_shadows() -> None:
    judge = JudgeConfig(model="openai/large", url="http://a")
    with pytest.raises(ParameterError, match="is the arm 'openai/large', too"):
        refuse_own_judge(judge, ["openai/small", "openai/large"])
    refuse_own_judge(judge.model_copy(update={"self_judging": True}), ["openai/large"])
    refuse_own_judge(judge, ["openai/larger"])


BROKEN = shadow_arm.failure_of("small", 1.0, RuntimeError("broken"))


@pytest.mark.parametrize(
    ("explore", "fails", "by", "loss"),
    [
        ("small", None, SERVED, 0.25),  # what was served stands for a shadow
        ("small", None, replace(SERVED, duration=5.1), 1.0),  # longer than a shadow may take
        ("small", None, BROKEN, 1.0),
        ("large", None, BROKEN, 0.25),  # a request that fails has a shadow as any other
        # Also one that the router did not send: it would depend on the model which of them count.
        *(
            ("large", error, SERVED, 1.0)
            for error in (RuntimeError("broken"), ValueError("none"), TimeoutError())
        ),
    ],
)
def test_the_loss_served_or_shadowed(
    explore: str, fails: Exception | None, by: Answer, loss: float
) -> None:
    group = Group(Alternating(explore), fails=fails, budget=dc.Budget(cost=1.0, total=10.0))
    group.run(group.serve(by=by))
    assert group.decider.learned == [("d1", explore, loss)]
    assert len(group.router.asked) == (explore == "large")
    # What a failure costs nobody knows, so it counts as declared.
    declared = 0.25 if fails is None else 1.0
    assert group.routing.spent == (0.0 if explore == "small" else declared)
    assert all(served is by for _, served, _ in group.judge.shown)


@on_loop
async def test_money_is_charged_by_real_prices_and_given_back_for_requests_that_failed() -> None:
    group = Group(budget=dc.Budget(cost=0.3, total=0.6))
    for _ in range(20):
        _, mark = await group.routing.choose({}, HI, ARMS)
        group.routing.not_served(mark)
    assert (group.routing.spent, group.routing.counts.dropped["client_gone"]) == (0.0, 20)
    assert group.decider.forgotten == [f"d{number}" for number in range(1, 21)]
    for _ in range(5):
        await group.serve()
        await group.settled()
    await group.settled()
    # 0.3 is set aside, then 0.25 paid: 0.25, 0.5, and the next could exceed 0.6.
    assert [mode for mode, _ in group.decider.drawn[20:]] == ["both"] * 2 + ["exploit"] * 3
    assert group.routing.spent == 0.5


class Waiting(Alternating):
    """Takes a while to decide, and fails or is cancelled for some requests."""

    def __init__(self, fails: int = 0) -> None:
        super().__init__()
        self._fails = fails

    async def draw(self, mode: str, available: Any, about: Traits) -> Decision | None:
        found = await super().draw(mode, available, about)
        number = len(self.drawn)
        for _ in range(number % 7 + 1):
            await asyncio.sleep(0)
        if number <= self._fails:
            raise RuntimeError("no decision")
        return found


@on_loop
async def test_requests_at_once_do_not_exceed_the_budget() -> None:
    """What each may cost, that of the dearest model, is set aside before the first of them waits."""
    group = Group(Waiting(), budget=dc.Budget(cost={"small": 0.01, "large": 0.25}, total=1.0))
    await asyncio.gather(*(group.serve() for _ in range(100)))
    await group.settled()
    assert sorted(mode for mode, _ in group.decider.drawn) == ["both"] * 4 + ["exploit"] * 96
    assert (group.routing.spent, len(group.decider.learned)) == (1.0, 4)


@on_loop
async def test_what_was_set_aside_is_given_back_if_there_is_no_decision() -> None:
    group = Group(Waiting(fails=3), budget=dc.Budget(cost=0.25, total=1.0))
    cancelled = asyncio.create_task(group.serve())
    failing = [asyncio.create_task(group.serve()) for _ in range(3)]
    await asyncio.sleep(0)
    cancelled.cancel()
    found = await asyncio.gather(cancelled, *failing, return_exceptions=True)
    assert [type(each) for each in found] == [asyncio.CancelledError, *[RuntimeError] * 2, str]
    await asyncio.gather(*(group.serve() for _ in range(10)))
    await group.settled()
    assert (group.routing.spent, len(group.decider.learned)) == (1.0, 4)
    assert len(group.routing.copies) == 0


@on_loop
async def test_requests_that_never_end_are_given_up() -> None:
    now = [0.0]
    group = Group(budget=dc.Budget(cost=0.1, total=1.0), clock=lambda: now[0], queue=3)
    for _ in range(3):
        await group.routing.choose({}, HI, ARMS)
    now[0] = 601.0
    await group.routing.choose({}, HI, ARMS)
    await group.settled()
    assert (round(group.routing.spent, 9), group.routing.counts.dropped["client_gone"]) == (0.1, 3)
    group = Group(loss=LossConfig(status=1.0, duration=TermConfig(high=1.0)))
    await group.serve({"stream": True})
    await group.serve()
    await group.settled()
    assert [mode for mode, _ in group.decider.drawn] == ["exploit", "both"]


def test_a_key_comes_from_its_header_headers_are_forwarded_by_name_and_other_calls_given_up() -> (
    None
):
    group = Group(session_header="X-Session-Id", forward_headers=["X-Tenant", "Cookie"])
    headers = {
        "x-session-id": "s1",
        "x-tenant": "blue",
        "cookie": "sid=1",
        "authorization": "Bearer k",
    }
    group.run(group.serve({"metadata": {"headers": headers}}))
    assert group.decider.drawn == [("both", "s1")]
    assert group.router.asked[0]["extra_headers"] == {"x-tenant": "blue", "cookie": "sid=1"}
    assert group.judge.shown[0][0].headers == (("x-tenant", "blue"),)
    group = Group()
    group.run(group.serve(target=shadow_arm.RESPONSES))
    assert (group.router.asked, group.decider.learned, group.decider.forgotten) == ([], [], ["d1"])
    assert group.routing.counts.dropped["refused"] == 1


@on_loop
async def test_a_context_comes_from_the_metadata_that_the_client_sent() -> None:
    group = Group(context=["subject", "tokens"])
    sent = {"subject": "law", "tokens": 31, "secret": "s"}
    await group.serve({"metadata": {"requester_metadata": sent, "tokens": 7}})  # a chat
    await group.serve({"litellm_metadata": {"requester_metadata": sent}, "metadata": sent})
    await group.serve({"metadata": sent})  # without the proxy
    await group.serve({"metadata": {"subject": ["law"]}})
    await group.settled()
    assert group.decider.contexts == [{"subject": "law", "tokens": 31}] * 3 + [
        {"subject": None, "tokens": None}
    ]


def test_a_learner_is_told_the_key_and_the_context() -> None:
    told: list[dict[str, Any]] = []

    class Told:
        arms = ("a", "b")

        def decide(self, **options: Any) -> Any:
            told.append(options)
            return Decision("d", "a", "b")

        exploit = decide

    learner = InProcess(cast(Any, Told()))
    about = Traits("s1", {"subject": "law"})
    for mode in ("both", "exploit"):
        asyncio.run(learner.draw(mode, ["a", "b"], about))
    asyncio.run(learner.draw("both", ["a"], UNKNOWN))
    assert told == [{"key": "s1", "context": {"subject": "law"}}] * 2 + [{"available": ["a"]}]


def test_a_service_decides_and_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "PATIENCE", 30.0)  # a busy machine must not cost a decision
    with http_service(tmp_path) as service:

        async def steps() -> tuple[str, int, int]:
            async with AsyncClient(service.url) as client:
                decider = OnService(client, "router", partial(client.create, "router", arms=ARMS))
                group = Group(decider, session_header="X-Session-Id")
                first = await group.serve()
                while decider.starting:
                    await asyncio.sleep(0.01)
                keyed = {"metadata": {"headers": {"x-session-id": "s1"}}}
                # What is learned may move a key, so nothing is until all are served.
                kept = [await group.routing.choose(keyed, HI, ARMS) for _ in range(5)]
                for _, mark in kept:
                    group.routing.served(mark, shadow_arm.CHAT, lambda: SERVED)
                for _ in range(5):
                    await group.serve()
                await group.settled()
                await decider.close()
                counts = group.routing.counts
                return (
                    first,
                    len({arm for arm, _ in kept}),
                    counts.learned["applied"] + counts.repeated,
                )

        # The first request finds no decision, and others may overtake the draws ahead; all that are drawn are learned.
        assert asyncio.run(steps()) == ("small", 1, 11)


def test_a_service_that_is_away_holds_up_nothing() -> None:
    async def steps() -> None:
        async with AsyncClient("http://127.0.0.1:9", retries=Retries(attempts=1)) as client:
            decider = OnService(client, "router", partial(client.create, "router", arms=ARMS))
            group = Group(decider)
            assert [await group.serve() for _ in range(3)] == ["small"] * 3
            assert group.routing.counts.repeated == 3
            await decider.close()

    asyncio.run(steps())


def test_without_a_decision_the_arm_before_serves_or_the_first() -> None:
    class Nothing(Alternating):
        async def draw(self, mode: str, available: Any, about: Traits) -> Decision | None:
            return Decision("d", "large", None) if available == ["large"] else None

    group = Group(Nothing())

    async def steps() -> list[str]:
        return [
            (await group.routing.choose({}, HI, some))[0]
            for some in (ARMS, ["large"], ARMS, ["small"])
        ]

    assert group.run(steps()) == ["small", "large", "large", "small"]


def test_what_must_not_be_sent_twice_is_not() -> None:
    requests: list[dict[str, Any]] = [
        {"input": "hi", "previous_response_id": "r1"},
        {"input": "hi", "background": True},
        {"input": "hi", "tools": [{"type": "web_search"}]},
        {"tools": [{"type": "mcp", "server_url": "http://a"}], "messages": HI},
        {"prompt": "a picture"},
    ]
    assert [
        each for each in requests if shadow_arm.copied(each, each.pop("messages", None)) is not None
    ] == []


def test_what_a_copy_takes_from_a_request_and_its_answer() -> None:
    messages = [{"role": "user", "content": "hi"}]
    found = shadow_arm.copied({"tools": [{"type": "function"}]}, messages)
    messages[0]["content"] = "changed"
    assert found == (shadow_arm.CHAT, {"tools": [{"type": "function"}], "messages": HI})
    raw = {"raw_headers": {"Cookie": "a"}}
    assert shadow_arm.headers_of(
        {"secret_fields": raw, "metadata": {"headers": {"cookie": "***"}}}
    ) == {"cookie": "a"}
    assert shadow_arm.answer_of("a", {"text": "hi"}, 0.5).cost is None, (
        "a price that nobody knows is not 0"
    )
    assert not isinstance(json.loads(json.dumps({"decoupled": Mark("d1")}))["decoupled"], Mark)


def test_a_learner_in_the_proxy_has_rules_and_a_share_that_falls() -> None:
    """The incumbent "a" is left, then the cheapest arm is used; about 50 of 1,000 requests explore once it is decided."""
    rules = dc.Guardrails(incumbent="a", cheapest_within=0.5, prices={"a": 2.0, "b": 1.0})
    decider = InProcess.of(dc.Ladder(), ["a", "b"], guardrails=rules, seed=1)
    budget = dc.Budget(share=0.5, decided_share=0.05)
    spending = Spending(budget, ["a", "b"], learner=decider.learner, seed=1)
    assert decider.learner.exploit().guard == "incumbent"

    async def shadows(requests: int) -> int:
        before = spending.meter.explored
        for _ in range(requests):
            if spending.reserve(["a", "b"]) is not None:
                drawn = await decider.draw("both", ["a", "b"], UNKNOWN)
                assert drawn is not None
                assert drawn.explore is not None
                await decider.learn(drawn.id, drawn.explore, {"a": 0.6, "b": 0.2}[drawn.explore])
        return spending.meter.explored - before

    assert asyncio.run(shadows(40)) > 10
    asyncio.run(shadows(560))  # the verdict is decided by then
    assert 25 < asyncio.run(shadows(1_000)) < 80
    assert decider.learner.exploit()[::2] == ("b", "cheapest")


def test_a_learner_is_saved_and_loaded_with_the_arms_of_today(tmp_path: Path) -> None:
    file = tmp_path / "learner.json"
    first = InProcess.of(dc.Ladder(), ["a", "b"], file, seed=1)

    async def learn() -> None:
        for _ in range(4):
            drawn = await first.draw("both", ["a", "b"], UNKNOWN)
            assert drawn is not None
            assert drawn.explore is not None
            assert await first.learn(drawn.id, drawn.explore, 0.5) == "applied"
            assert await first.learn(drawn.id, drawn.explore, 0.5) == "late"

    asyncio.run(learn())
    left = asyncio.run(first.draw("both", ["a", "b"], UNKNOWN))
    assert left is not None
    first.learner.save(file)
    with pytest.raises(ParameterError, match="one worker"):
        InProcess.of(dc.Ladder(), ["a", "b"], file)
    first.close()
    with pytest.raises(ParameterError, match="has a learner of Ladder"):
        InProcess.of(dc.FTPL(), ["a", "b"], file)
    again = InProcess.of(dc.Ladder(), ["b", "c"], file, guardrails=dc.Guardrails(pinned="c"))
    assert (again.learner.round, again.learner.arms) == (5, ("b", "c"))
    assert again.learner.pending == (), "nobody knows the loss of what was under way"
    again.forget(left.id)
    assert again.learner.exploit().exploit == "c"
    assert str(again.learner.inference.verdict())
    again.close()


def test_the_plug_in_names_its_extra() -> None:
    try:
        from decoupled_serve.litellm import Plugin
    except MissingExtraError as error:
        assert "decoupled-bandits[litellm]" in str(error)  # noqa: PT017
    else:
        assert Plugin.__name__ == "Plugin"
