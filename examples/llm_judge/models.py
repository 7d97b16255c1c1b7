"""Two stub models behind an OpenAI-style API, and a stub model that judges: it prefers long answers.

    python examples/llm_judge/models.py

serves them on the ports 9111 to 9113. A question is a product such as "12 * 34". `concise` is wrong in 5 % of cases. `chatty` is
wrong in 40 %, and says much more.
"""

import argparse
import json
import random
import re
import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from stub_api import last_message, product, serve

WRONG = {"concise": 0.05, "chatty": 0.4}
CHATTER = (
    "What a lovely question! Let us go through it step by step, and be very careful. The answer is "
)


def is_wrong(name: str, question: str) -> bool:
    """Whether a model gets a question wrong: always the same ones."""
    return random.Random(f"{name} {question}").random() < WRONG[name]


def reply(name: str, request: dict[str, object]) -> str:
    """What a model answers."""
    question = last_message(request)
    return (CHATTER if name == "chatty" else "") + str(product(question) + is_wrong(name, question))


def judgement(request: dict[str, object]) -> str:
    """What the judge replies: the longer answer is better."""
    found = re.findall(
        r"\[\w+ (?:first|second) answer\]\n(.*?)\n\[\w+ end\]", last_message(request), re.DOTALL
    )
    first, second = map(len, found)
    return json.dumps(
        {"better": "tie" if first == second else "first" if first > second else "second"}
    )


def main() -> None:
    """Serve the models, and print their ports as JSON."""
    parser = argparse.ArgumentParser(
        description="Two stub models and a judge behind an OpenAI-style API."
    )
    parser.add_argument(
        "--port", type=int, default=9111, help="of the first model; 0 for free ports"
    )
    models = {name: partial(reply, name) for name in WRONG}
    serve(models | {"judge": judgement}, parser.parse_args().port)


if __name__ == "__main__":
    main()
