"""Three stub models behind an OpenAI-style API, with different quality, latency and price.

    python examples/llm_router/models.py

serves them on the ports 9101 to 9103. A question is a product such as "12 * 34"; each model gets some of them wrong,
always the same ones.
"""

import argparse
import random
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parent.parent))

from stub_api import last_message, product, serve


class Model(NamedTuple):
    """How often a model is wrong, how many seconds it takes, and the price of a call in cents."""

    wrong: float
    seconds: float
    price: float


MODELS = {
    "small": Model(0.35, 0.001, 0.1),
    "medium": Model(0.10, 0.003, 0.5),
    "large": Model(0.07, 0.008, 2.5),
}


def is_wrong(name: str, question: str) -> bool:
    """Whether a model gets a question wrong."""
    return random.Random(f"{name} {question}").random() < MODELS[name].wrong


def reply(name: str, request: dict[str, object]) -> str:
    """What a model answers."""
    found = re.search(r"\d+ \* \d+", last_message(request))
    assert found is not None
    time.sleep(MODELS[name].seconds)
    return str(product(found[0]) + is_wrong(name, found[0]))


def main() -> None:
    """Serve the models, and print their ports as JSON."""
    parser = argparse.ArgumentParser(description="Three stub models behind an OpenAI-style API.")
    parser.add_argument(
        "--port", type=int, default=9101, help="of the first model; 0 for free ports"
    )
    serve({name: partial(reply, name) for name in MODELS}, parser.parse_args().port)


if __name__ == "__main__":
    main()
