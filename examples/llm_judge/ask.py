"""Sends questions to the mirror, and prints which model answered.

python examples/llm_judge/ask.py
"""

import argparse
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx


def main() -> None:
    """Ask."""
    parser = argparse.ArgumentParser(description="Sends questions to the mirror.")
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    options = parser.parse_args()
    chance = random.Random(1)

    def ask(question: str) -> str:
        body = {"model": "router", "messages": [{"role": "user", "content": question}]}
        answer = http.post(f"{options.url}/v1/chat/completions", json=body).raise_for_status()
        return str(answer.json()["model"])

    asked = [
        f"{chance.randrange(1_000, 9_999)} * {chance.randrange(1_000, 9_999)}"
        for _ in range(options.requests)
    ]
    with httpx.Client(timeout=60.0) as http, ThreadPoolExecutor(8) as threads:
        print(dict(Counter(threads.map(ask, asked))))


if __name__ == "__main__":
    main()
