"""Fields that functions find in a prompt: what they say, that nobody waits for them, and that no prompt is stored."""

import json
import sys
from typing import Any

import pytest

import decoupled as dc
from decoupled.errors import ParameterError
from decoupled_serve.mirror import prompts
from decoupled_serve.mirror.backend import Embedded
from decoupled_serve.mirror.config_file import explained
from decoupled_serve.mirror.exchange import Request
from decoupled_serve.service.service import open_service
from support.mirrors.running import Start, mirror

POLICY = dc.ContextualLadder(numbers=("tokens",), vectors=("prompt",), vector_numbers=3)
CONFIG = """
[mirror]
share = 1.0
repeat = ["POST /*"]
[experiment.policy]
name = "ContextualLadder"
numbers = ["tokens"]
vectors = ["prompt"]
vector_numbers = 3
[context]
prompt = { python = "decoupled_serve.mirror.prompts:prompt", type = "vector", timeout = 60 }
tokens = { python = "decoupled_serve.mirror.prompts:tokens", type = "number", timeout = 60 }
length = { json = "title", type = "text" }
late = { python = "features_for_a_test:late", type = "number" }
broken = { python = "features_for_a_test:broken", timeout = 60 }
leaving = { python = "features_for_a_test:leaving", timeout = 60 }
odd = { python = "features_for_a_test:odd", type = "number", timeout = 60 }
"""
FEATURES = """
import sys, threading
RELEASED = threading.Event()
late = lambda request: RELEASED.wait() and 7
broken = lambda request: 1 / 0
leaving = lambda request: sys.exit("zebra")
odd = lambda request: "zebra"
"""
SAID = "a zebra of a prompt"


def test_functions_find_fields_and_nobody_waits_for_one_that_is_late(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    (start.folder / "features_for_a_test.py").write_text(FEATURES)
    config = start.config(CONFIG)
    assert "late (number of python 'features_for_a_test:late')" in explained(config)
    service = open_service(start.store)
    with mirror(config, Embedded(service, config)) as running:
        for _ in range(
            12
        ):  # each is answered while the function still runs, and eight threads wait for it at most
            body = {"messages": [{"role": "user", "content": SAID}], "title": "t"}
            running.http.post("/echo", json=body).raise_for_status()
        counts = running.until(lambda status: status["learned"]["applied"] == 12)
        assert counts["fields_missing"] == {"failed": 24, "late": 12}
        module: Any = sys.modules["features_for_a_test"]
        module.RELEASED.set()
        page = service.listing.decisions("local", "mirror", status="applied").result().items
    numbers = POLICY.spread("prompt", SAID) | {"tokens": len(SAID) / 4, "length": "t"}
    assert [each.context for each in page] == [numbers] * 12
    assert "its function failed with ZeroDivisionError" in caplog.text
    raw = b"".join(path.read_bytes() for path in start.folder.glob("*.db*"))
    assert "zebra" not in caplog.text
    assert b"zebra" not in raw
    for field, words in (
        ('{ python = "math:nothing" }', "context.late.python.*no function nothing"),
        ('{ python = "math:pow" }', r"context.late.python.*cannot be called with \(request\)"),
        ('{ header = "X-A", python = "math:pi" }', "exactly one of"),
        (
            '{ header = "X-A", type = "vector" }',
            r"context.late = 'vector': needs a policy that learns from it",
        ),
    ):
        with pytest.raises(ParameterError, match=words):
            explained(start.config(f"[context]\nlate = {field}\n"))


def test_what_a_chat_says_of_itself() -> None:
    fenced = "Why?\n```Python\nx\n```\nand\n```\ny\n```\nor\n~~~ c++\nz"
    said = [
        {"role": "user", "content": fenced},
        {"role": "assistant", "content": "```go\n```"},
        {"role": "user", "content": "hi"},
    ]
    body: Any = {"messages": said, "tools": [{}, {}]}
    features = (prompts.prompt, prompts.tokens, prompts.turns, prompts.tools, prompts.language)
    for content, expected in (
        (body, ["hi", (len(fenced) + 11) / 4, 2, 2, "c++"]),
        ({"prompt": "```\nx"}, ["```\nx", 1.25, 1, 0, "code"]),
        ({"messages": 7}, [None] * 5), ([body], [None] * 5),
    ):  # fmt: skip
        request = Request("POST", "/", (), json.dumps(content).encode())
        assert [feature(request) for feature in features] == expected
