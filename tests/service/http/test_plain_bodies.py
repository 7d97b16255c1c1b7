"""The plainest bodies are read without their model: only those, and to the same values."""

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from decoupled.service.errors import ServiceError
from decoupled.service.http.decisions import FeedbackBatchIn, FeedbackIn, _validated
from decoupled.service.http.plain_bodies import plain_batch, plain_feedback

NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.decimals(-2, 2, places=4).map(str),
    st.text("0123456789.-+eE", max_size=8),
)
SPACES = st.text(" \t\r\n\x0b\x0c\xa0", max_size=2)


@settings(max_examples=300, deadline=None)
@given(SPACES, SPACES, SPACES, NUMBERS, st.sampled_from(["loss", "Loss", "reward", "lo\\u0073s"]))
def test_a_loss(before: str, between: str, after: str, number: str, name: str) -> None:
    body = f'{before}{{"{name}"{between}:{between}{number}{between}}}{after}'.encode()
    found = plain_feedback("x-1", body)
    if found is not None:
        sent = _validated(FeedbackIn, body)
        assert isinstance(found.loss, float)
        assert (found.loss, math.copysign(1.0, found.loss)) == (sent.loss, math.copysign(1.0, sent.loss))
        assert found == ("x-1", found.loss, None, None, None)


def test_what_clients_send_is_plain() -> None:
    for body in (
        b'{"loss": 0.25}',
        b'{"loss":1}',
        b'{"loss": 0.12345678901234567}',
        b' {"loss" : 120.5 }\n',
    ):
        found = plain_feedback("x-1", body)
        assert found is not None
        assert found.loss == json.loads(body)["loss"]
    for body in (b"", b"{}", b'{"loss": -0}', b'{"loss": 1e2}', b'{"loss": 0.5, "arm": "a"}'):
        assert plain_feedback("x-1", body) is None


ITEM = st.fixed_dictionaries(
    {"decision": st.sampled_from(["a-1", "", "x" * 201, 7]) | st.just("b-2")},
    optional={
        "loss": st.sampled_from([0.5, 1, 0, True, None, "0.5", 2**60, -1.5, [0.5]]) | st.floats(0, 1),
        "arm": st.just("red"),
        "reward": st.just(0.5),
    },
)


@settings(max_examples=300, deadline=None)
@given(st.fixed_dictionaries({"items": st.lists(ITEM, max_size=3)}, optional={"more": st.just(1)}))
def test_a_batch(content: dict[str, Any]) -> None:
    found = plain_batch(content)
    try:
        model = _validated(FeedbackBatchIn, json.dumps(content).encode()).given()
    except ServiceError:
        assert found is None
        return
    plain = all(set(each) == {"decision", "loss"} for each in content["items"])
    ordinary = all(type(each.get("loss")) in (int, float) for each in content["items"])
    exact = all(each.loss is not None and abs(each.loss) <= 2**53 for each in model)
    assert (found is not None) == (plain and ordinary and exact)
    if found is not None:
        assert found == model
        assert all(type(each.loss) is float for each in found)
