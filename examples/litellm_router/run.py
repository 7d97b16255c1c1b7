"""The plug-in for LiteLLM against LiteLLM's own adaptive router and against fixed models, on the same stub models.

    make litellm

Clients ask products in sessions of four turns. The adaptive router learns from what a client says next, so there are
two kinds of clients: some say whether the answer before was right, with words that it knows, and others say nothing.
The plug-in learns from shadows of a fifth of the requests, which a judge compares.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices come from the configuration
os.environ.setdefault("LITELLM_LOG", "ERROR")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "llm_router"), str(HERE.parent)]

import litellm  # noqa: E402
import mirror_runs as runs  # noqa: E402
from models import MODELS, is_wrong, product  # noqa: E402

import decoupled as dc  # noqa: E402
from decoupled.base.arrays import Floats  # noqa: E402
from decoupled_lab.report.claims import Claim, judged, mean_of, ratio_of  # noqa: E402
from decoupled_serve.litellm import Plugin  # noqa: E402

TOKENS, TURNS, CLIENTS = 4, 4, 4
OURS, TOLD = "the plug-in", "LiteLLM's adaptive router, told by clients"
NOT_TOLD = "LiteLLM's adaptive router, not told"
# What clients say after an answer, by turn. The adaptive router knows these words. Consecutive messages share no other
# word: it would take that for a question that had to be asked again.
RIGHT, WRONG = (
    ("Thanks. ", "Perfect. ", "Great. ", "Exactly. "),
    ("Cancel. ", "Stop. ", "Abort. ", "Never mind. "),
)
ARMS = ["openai/medium", "openai/small", "openai/large"]
LOW, HIGH = (
    min(each.price for each in MODELS.values()) / 100.0,
    max(each.price for each in MODELS.values()) / 100.0,
)
LOSS = {
    "judge": {"weight": 0.7, "python": "judge:is_wrong"},
    "cost": {"weight": 0.3, "low": LOW, "high": HIGH},
}


@dataclass
class Run:
    """What a router did: the model that served each question, and the dollars that the shadows cost."""

    served: list[tuple[str, str]]
    shadows: float = 0.0


def loss(model: str, question: str) -> float:
    """The loss of an answer: LiteLLM's objective with its default weights, and ours in this example."""
    price = MODELS[model].price / 100.0
    return 0.7 * is_wrong(model, question) + 0.3 * (price - LOW) / (HIGH - LOW)


def deployments(ports: dict[str, int], group: str | None = None) -> list[dict[str, Any]]:
    """The models as LiteLLM's configuration has them: in one group, or each in its own."""
    return [
        {
            "model_name": group or name,
            "litellm_params": {
                "model": f"openai/{name}",
                "api_base": f"http://127.0.0.1:{port}/v1",
                "api_key": "none",
                "input_cost_per_token": MODELS[name].price / 100.0 / TOKENS,
                "output_cost_per_token": MODELS[name].price / 100.0 / TOKENS,
            },
            "model_info": {"input_cost_per_token": MODELS[name].price / 100.0 / TOKENS},
        }
        for name, port in ports.items()
    ]


def adaptive(ports: dict[str, int]) -> litellm.Router:
    """LiteLLM's adaptive router, with its default weights."""
    config = {"available_models": list(ports), "weights": {"quality": 0.7, "cost": 0.3}}
    own = {
        "model_name": "chat",
        "litellm_params": {
            "model": "auto_router/adaptive_router",
            "adaptive_router_default_model": "medium",
            "adaptive_router_config": config,
        },
    }
    return litellm.Router(model_list=[*deployments(ports), own])


def questions(count: int, seed: int) -> list[str]:
    """Products of two numbers."""
    numbers = np.random.default_rng(seed).integers(1_000, 10_000, size=(count, 2))
    return [f"{left} * {right}" for left, right in numbers]


async def played(
    router: litellm.Router, asked: Sequence[str], seed: int, *, tells: bool
) -> list[tuple[str, str]]:
    """Ask all questions in sessions, some at a time; returns the model that served each, with the question."""
    served: list[tuple[str, str]] = []
    sessions = iter([asked[place : place + TURNS] for place in range(0, len(asked), TURNS)])

    async def client() -> None:
        for number, session in enumerate(sessions):
            history: list[dict[str, str]] = []
            said = ""
            for turn, question in enumerate(session):
                history.append({"role": "user", "content": f"{said}{question}"})
                answer = await router.acompletion(
                    model="chat",
                    messages=history,
                    litellm_session_id=f"{seed}-{session[0]}-{number}",
                )
                text = answer.choices[0].message.content
                served.append(
                    (answer._hidden_params["litellm_model_name"].removeprefix("openai/"), question)
                )
                history.append({"role": "assistant", "content": text})
                if tells:
                    said = (RIGHT if text == str(product(question)) else WRONG)[turn]

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return served


async def ours(ports: dict[str, int], asked: Sequence[str], seed: int, share: float) -> Run:
    """A run with the plug-in."""
    router = litellm.Router(model_list=deployments(ports, "chat"))
    plugin = Plugin(
        "chat", ARMS, LOSS, seed=seed, folder=HERE, router=router,
        budget=dc.Budget(share=share, cost=HIGH, allowance=(1e9, 1e9)),
    )  # fmt: skip
    litellm.callbacks = [plugin]
    served = await played(router, asked, seed, tells=False)
    await asyncio.sleep(0.5)
    await plugin.routing.copies.drain(60.0)
    return Run(served, plugin.routing.spent)


async def theirs(ports: dict[str, int], asked: Sequence[str], seed: int, *, tells: bool) -> Run:
    """A run with LiteLLM's adaptive router."""
    litellm.callbacks = []
    return Run(await played(adaptive(ports), asked, seed, tells=tells))


def less(name: str, what: str, above: Floats, below: Floats, rival: str) -> Claim:
    """The claim that the plug-in has less of something than a rival, over the same questions."""
    part = ratio_of("all runs", above, below)
    statement = f"The plug-in has less of this than {rival}: {what}."
    return judged(name, "ours", statement, f"{what}, over that of {rival}", [part], high=1.0)


async def one(seed: int, count: int, share: float, ports: dict[str, int]) -> dict[str, Any]:
    """The mean losses and the dollars of all rivals with the same questions."""
    asked = questions(count, seed)
    found = {
        OURS: await ours(ports, asked, seed, share),
        TOLD: await theirs(ports, asked, seed, tells=True),
        NOT_TOLD: await theirs(ports, asked, seed, tells=False),
        **{f"always {model}": Run([(model, each) for each in asked]) for model in MODELS},
    }
    return {
        "run": [seed, count, share],
        "loss": {
            label: float(np.mean([loss(*each) for each in run.served]))
            for label, run in found.items()
        },
        "dollars": {
            label: sum(MODELS[model].price for model, _ in run.served) / 100.0 + run.shadows
            for label, run in found.items()
        },
    }


def compared(played: Sequence[dict[str, Any]]) -> tuple[list[str], list[Claim]]:
    """The means with their intervals, as lines, and the claims."""
    losses, dollars = (
        {label: np.array([each[what][label] for each in played]) for label in played[0][what]}
        for what in ("loss", "dollars")
    )
    lines = []
    for label, values in losses.items():
        mean = mean_of(label, values)
        interval = f"{mean.value:.3f} ({mean.low:.3f} to {mean.high:.3f})"
        lines.append(f"{label:48} loss {interval}, ${np.mean(dollars[label]):.2f}")
    rivals = [label for label in losses if label != OURS]
    claims = [
        less("litellm-loss", "mean loss served", losses[OURS], losses[each], each)
        for each in rivals
    ]
    bills = [
        less("litellm-bill", "dollars, with shadows", dollars[OURS], dollars[each], each)
        for each in rivals
    ]
    return lines, [*claims, *bills]


def main() -> None:
    """Run the example, or what is left of it."""
    parser = argparse.ArgumentParser(
        description="The plug-in for LiteLLM against LiteLLM's adaptive router."
    )
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument(
        "--share", type=float, default=0.2, help="of the requests that have a shadow"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/litellm_router.jsonl"), help="runs that are done"
    )
    options = parser.parse_args()
    litellm.suppress_debug_info = True
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {tuple(each["run"]): each for each in map(json.loads, lines)}
    wanted = [(seed, options.requests, options.share) for seed in range(options.runs)]
    with (
        runs.upstreams(HERE.parent / "llm_router" / "models.py") as ports,
        options.out.open("a") as file,
    ):
        for run in wanted:
            if run not in done:
                done[run] = asyncio.run(one(*run, ports))
                print(json.dumps(done[run]), file=file, flush=True)
                print(f"run {run[0] + 1} of {options.runs}", flush=True)
    told, claims = compared([done[run] for run in wanted])
    print(
        f"{options.runs} runs of {options.requests} requests, shadows for {options.share:.0%}; 95 % intervals"
    )
    print(*told, runs.printed(claims), sep="\n")


if __name__ == "__main__":
    main()
