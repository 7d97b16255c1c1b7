"""LiteLLM's shadow evaluation and our verdict: the same traffic, the same judge, the same dollars.

    make litellm-shadow

`current` serves, and `next` is the candidate. LiteLLM's own ShadowEvalLogger samples half of the requests by their hash, asks
`next`, has the two answers judged blind, counts what that costs against the budget, and writes a row; the router, the database
and the counter of dollars that it calls are in this process. A person looks at the win rates after every 100 pairs. LiteLLM
shows them without intervals and gives no rule, so there are two people: one switches the first time that `next` has won more
often than `current`, one when it leads by 5 points. Ours is `Ladder()`, which pays for an answer and the judge where it explores
the model that does not serve, and the verdict is read after every 100 of these; with labels, somebody who knows is paid, too.
"""

import argparse
import asyncio
import csv
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOG", "ERROR")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from litellm import ModelResponse  # noqa: E402
from litellm.caching.in_memory_cache import InMemoryCache  # noqa: E402
from litellm.integrations import shadow_eval_logger as theirs  # noqa: E402
from scipy.stats import binomtest  # noqa: E402
from stub_api import completion, product  # noqa: E402

import decoupled as dc  # noqa: E402
from decoupled.plots import Panel, Picture, Series, draw  # noqa: E402

BUDGET, ANSWER, JUDGE, LABEL = 60.0, 0.01, 0.01, 0.05  # dollars
REQUESTS, LOOK = 10_000, 100
NOTICES = 0.85  # how often the judge finds the right one of a right and a wrong answer
MODELS = ("current", "next")
CHATTER = "Let us go through it step by step, and be very careful. The answer is "
AHEAD, CLEARLY = "LiteLLM, switch when ahead", "LiteLLM, switch when 5 points ahead"
PLAIN, LABELS = "verdict", "verdict, with labels"
LEADS = {AHEAD: 0.0, CLEARLY: 0.05}


class Scenario(NamedTuple):
    """How often the two models are wrong, and how often the judge prefers the longer of two equally good answers."""

    title: str
    wrong: tuple[float, float]
    longer: float = 0.0


SCENARIOS = {
    "worse": Scenario("next is worse", (0.10, 0.18)),
    "biased": Scenario("next is worse, the judge likes long answers", (0.10, 0.18), 0.3),
    "equal": Scenario("no difference", (0.10, 0.10)),
    "better": Scenario("next is better", (0.18, 0.10)),
}


class Asked(NamedTuple):
    """A request, what `current` and `next` answer, and whether that is right."""

    question: str
    answers: tuple[str, str]
    right: tuple[bool, bool]


class Ending(NamedTuple):
    """The model that was decided for and the dollars spent until then; None if the budget was spent first."""

    model: str | None
    dollars: float


def traffic(scenario: Scenario, seed: int) -> list[Asked]:
    """The recorded requests. `next` says more than `current`."""
    chance = np.random.default_rng(seed)
    found = []
    for left, factor in chance.integers(1_000, 10_000, size=(REQUESTS, 2)):
        question = f"{left} * {factor}"
        right = tuple(bool(each) for each in chance.random(2) >= scenario.wrong)
        texts = [str(product(question) + (not each)) for each in right]
        found.append(Asked(question, (texts[0], CHATTER + texts[1]), (right[0], right[1])))
    return found


def preferred(scenario: Scenario, question: str, answers: tuple[str, str]) -> int | None:
    """The judge: the place of the better answer, or None for a tie. It says the same whichever comes first."""
    chance = random.Random(question)
    right = [each.endswith(str(product(question))) for each in answers]
    if right[0] != right[1]:
        return right.index(chance.random() < NOTICES)
    likes = chance.random() < scenario.longer
    return max((0, 1), key=lambda place: len(answers[place])) if likes else None


class Proxy:
    """What LiteLLM's logger needs of the proxy: a router, a database, and the counter of dollars."""

    def __init__(self, scenario: Scenario, asked: Sequence[Asked]) -> None:
        self.scenario, self.spent = scenario, 0.0
        self.answers = {each.question: each.answers[1] for each in asked}
        self.rows: list[str] = []
        self.db = self.litellm_shadowevalattempt = self

    def registry(self) -> "Proxy":
        """The names of models."""
        return self

    def resolve(self, name: str, **_: Any) -> None:
        """No model has another name."""

    def names(self, model: str, **_: Any) -> list[str]:
        """Every model is a deployment."""
        return [model]

    async def acompletion(
        self, model: str, messages: list[dict[str, str]], **_: Any
    ) -> ModelResponse:
        """The answer of `next` or of the judge, with its price."""
        text = messages[-1]["content"]
        if model == "judge":
            asked, rest = text.removeprefix("Conversation:\nUSER: ").split("\n\nResponse A:\n")
            first, rest = rest.split("\n\nResponse B:\n")
            better = preferred(self.scenario, asked, (first, rest.split("\n\n")[0]))
            said = {"preference": "tie" if better is None else "AB"[better], "confidence": 1.0}
            return answer(model, json.dumps(said), JUDGE)
        return answer(model, self.answers[text], ANSWER)

    async def create(self, data: dict[str, Any]) -> None:
        """Write a row."""
        self.rows.append(data["outcome"])

    async def read_spend(self, *_: Any) -> float:
        """The dollars of the evaluation so far."""
        return self.spent

    async def write_spend(self, _: str, dollars: float) -> None:
        """Count dollars."""
        self.spent = round(self.spent + dollars, 6)


def answer(model: str, text: str, price: float) -> ModelResponse:
    """An answer as LiteLLM's router gives it."""
    found = ModelResponse(**completion(model, text, ""))
    found._hidden_params = {"response_cost": price}
    return found


async def watched(scenario: Scenario, asked: Sequence[Asked], seed: int) -> dict[str, Ending]:
    """Run LiteLLM's evaluation on the traffic; the people look at its win rates."""
    random.seed(seed)  # which answer is A
    proxy, cache = Proxy(scenario, asked), InMemoryCache(default_ttl=86_400)
    job = theirs.ActiveShadowEvalJob(
        id=f"job-{seed}", router_name="next", shadow_percentage=50.0, judge_model="judge", max_turns=10**9,
        max_budget=BUDGET, ends_at=datetime.now(UTC) + timedelta(days=1),
    )  # fmt: skip
    await cache.async_set_cache(theirs._JOBS_CACHE_KEY, {("key", "key"): (job,)})
    logger = theirs.ShadowEvalLogger(
        lambda: proxy, lambda: proxy, cache, proxy.read_spend, proxy.write_spend, lambda *_: None
    )
    found: dict[str, Ending] = {}
    looked = 0
    for number, each in enumerate(asked):
        payload = {
            "id": f"request-{number}", "call_type": "acompletion", "metadata": {"user_api_key_hash": "key"},
            "model": "current", "model_group": "current", "response_cost": ANSWER, "model_parameters": {},
        }  # fmt: skip
        messages = [{"role": "user", "content": each.question}]
        kwargs = {"standard_logging_object": payload, "messages": messages, "litellm_params": {}}
        await logger.async_log_success_event(
            kwargs, completion("current", each.answers[0], ""), None, None
        )
        while logger._inflight_shadow_tasks:
            await asyncio.sleep(0)
        if len(proxy.rows) >= looked + LOOK:
            looked += LOOK
            lead = (proxy.rows.count("shadow") - proxy.rows.count("real")) / len(proxy.rows)
            for who, least in LEADS.items():
                if who not in found and lead > least:
                    found[who] = Ending("next", proxy.spent)
        if proxy.spent >= BUDGET or len(found) == len(LEADS):
            break
    assert set(proxy.rows) <= {"real", "shadow", "tie"}, "LiteLLM's logger met an error"
    return {who: found.get(who, Ending(None, proxy.spent)) for who in LEADS}


def decided(
    scenario: Scenario, asked: Sequence[Asked], seed: int, labels: dc.Labels | None
) -> Ending:
    """Run ours on the same traffic, until it is decided or the budget is spent."""
    learner = dc.Ladder().start(MODELS, seed=seed, labels=labels)
    learner.watch()
    learner.guardrails = dc.Guardrails(incumbent="current")
    spent, looked = 0.0, 0
    paid = 0
    for each in asked:
        decision = learner.decide()
        serves, explores = MODELS.index(decision.exploit), MODELS.index(decision.explore)
        judged = truth = 0.5  # an answer against itself
        if serves != explores:
            paid += 1
            spent += ANSWER + JUDGE + LABEL * decision.label
            better = preferred(
                scenario, each.question, (each.answers[serves], each.answers[explores])
            )
            judged = 0.5 if better is None else 1.0 - better
            truth = 0.5 + 0.5 * (each.right[serves] - each.right[explores])
        if labels is None:
            learner.observe(decision, loss=judged)
        else:
            learner.observe(decision, judged=judged, loss=truth if decision.label else None)
        if paid >= looked + LOOK:
            looked += LOOK
            verdict = learner.inference.verdict()
            if verdict.state == "decided":
                return Ending(str(verdict.best), spent)
        if spent >= BUDGET:
            break
    return Ending(None, spent)


def replayed(run: tuple[str, int]) -> dict[str, Any]:
    """One replay: how each ends on the same traffic."""
    name, seed = run
    scenario = SCENARIOS[name]
    asked = traffic(scenario, seed)
    found = asyncio.run(watched(scenario, asked, seed))
    found[PLAIN] = decided(scenario, asked, seed, None)
    found[LABELS] = decided(scenario, asked, seed, dc.Labels(share=0.1, first=200))
    return {"scenario": name, "seed": seed, "endings": found}


# What is told


def share(count: int, of: int) -> tuple[float, float, float]:
    """A share with its interval (Clopper and Pearson)."""
    ends = binomtest(count, of).proportion_ci(0.95, "exact")
    return count / of, ends.low, ends.high


def told(name: str, endings: dict[str, list[Ending]]) -> Iterator[str]:
    """A line for each rule."""
    best = {"worse": "current", "biased": "current", "better": "next"}.get(name)
    for rule, found in endings.items():
        words = []
        for model in MODELS:
            value, low, high = share(sum(each.model == model for each in found), len(found))
            words.append(f"{model} {value:.1%} ({low:.1%} to {high:.1%})")
        dollars = [each.dollars for each in found if each.model == best is not None]
        words.append(f"median ${np.median(dollars):.2f} to the right one" if dollars else "")
        yield f"  {rule:36} {', '.join(words)}"


def panel(title: str, endings: dict[str, list[Ending]]) -> Panel:
    """The share of replays that have switched, by the dollars spent."""
    x = np.arange(0.0, BUDGET + 1.0, LOOK * (ANSWER + JUDGE))  # a look each
    series = []
    for style, (rule, found) in enumerate(endings.items()):
        switched = np.array([each.dollars if each.model == "next" else np.inf for each in found])
        y, low, high = np.array([share(int((switched <= at).sum()), len(found)) for at in x]).T
        series.append(Series(rule, x, y, np.stack([y - low, high - y]), style))
    return Panel(title, tuple(series), "dollars", "share that switched to next")


def main() -> None:
    """Run all replays, or what is left of them, and show how they ended."""
    parser = argparse.ArgumentParser(description="LiteLLM's shadow evaluation and our verdict.")
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("out/litellm_shadow"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "replays.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    done = {(each["scenario"], each["seed"]): each["endings"] for each in map(json.loads, lines)}
    runs = [(name, seed) for seed in range(options.replays) for name in SCENARIOS]
    with ProcessPoolExecutor(options.workers) as pool, kept.open("a") as file:
        for each in pool.map(replayed, [run for run in runs if run not in done]):
            print(json.dumps(each), file=file, flush=True)
            done[each["scenario"], each["seed"]] = each["endings"]
    panels = []
    print(f"{options.replays} replays, ${BUDGET:.0f} each; decided for, with 95 % intervals")
    for name, scenario in SCENARIOS.items():
        found = [done[name, seed] for seed in range(options.replays)]
        endings = {
            rule: [Ending(*each[rule]) for each in found] for rule in (*LEADS, PLAIN, LABELS)
        }
        print(scenario.title, *told(name, endings), sep="\n")
        panels.append(panel(scenario.title, endings))
    picture = Picture("litellm-shadow", "Switched to the candidate", "", tuple(panels), columns=2)
    draw(picture).savefig(options.out / "switched.png", dpi=150)
    with (options.out / "switched.csv").open("w", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(("panel", "series", "kind", "x", "y", "low", "high"))
        for drawn in panels:
            for curve in drawn.series:
                for x, y, (below, above) in zip(
                    curve.x, curve.y, np.transpose(curve.band), strict=True
                ):
                    numbers = (x, y, y - below, y + above)
                    write(
                        (drawn.title, curve.label, "line", *(f"{number:.6g}" for number in numbers))
                    )
    print(f"The picture and its numbers are {options.out / 'switched'}.png and .csv")


if __name__ == "__main__":
    main()
