"""The reference of the API in a real browser: read, searched, tried with a key, on a phone, in both colours."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.http_service import Service, openapi_document

DECIDE = "post-v1-experiments-name-decisions"


SERVED = {"open_to_all": False}


def prepare(service: Service) -> None:
    service.create("checkout", service.key("admin"))


@pytest.fixture
def page(browser: Any, service: Service) -> Iterator[Any]:
    """A page that must ask nobody but the service, and break none of its rules for content."""
    opened = browser.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    # Chromium logs every refused request; those without a key are part of the tests.
    opened.on(
        "console", lambda said: None if "status of 4" in said.text else complaints.append(said.text)
    )
    opened.on(
        "request",
        lambda sent: None if sent.url.startswith(service.url) else complaints.append(sent.url),
    )
    yield opened
    opened.close()
    assert complaints == []


def opened_at(page: Any, service: Service, operation: str = "") -> Any:
    page.goto(f"{service.url}/docs#{operation}")
    page.locator(".op").first.wait_for()
    return page.locator(f"#{operation}") if operation else page


def test_every_operation_is_there_and_can_be_found(page: Any, service: Service) -> None:
    opened_at(page, service)
    document = openapi_document()
    known = {
        (method.upper(), path) for path, found in document["paths"].items() for method in found
    }
    cards = page.locator(".op > summary")
    methods, paths = (cards.locator(each).all_inner_texts() for each in (".method", ".path"))
    shown = set(zip(methods, paths, strict=True))
    assert shown == known
    page.fill("#search", "PUT health check")
    assert page.locator(".op:visible .path").all_inner_texts() == ["/v1/experiments/{name}/down"]
    assert page.locator("aside .list a:visible").count() == 1
    page.fill("#search", "idempotency-key")
    assert f"2 of {len(known)} operations" in page.locator("aside").inner_text()
    page.fill("#search", "")
    page.get_by_role("link", name="POST Draw a decision").click()
    page.locator(f"#{DECIDE}[open]").wait_for()
    text = page.locator(f"#{DECIDE}").inner_text()
    for words in (
        "Idempotency-Key",
        "available",
        "at most 1,000",
        "409",
        "The loss to send back is",
    ):
        assert words in text


def test_a_request_is_tried_with_a_key(page: Any, service: Service) -> None:
    card = opened_at(page, service, DECIDE)
    send = card.get_by_role("button", name="Send POST")
    send.click()
    card.locator(".answer-status", has_text="401").wait_for()
    assert "Authorization: is missing" in card.locator(".answer").inner_text()
    key = service.key("decide")["Authorization"].removeprefix("Bearer ")
    page.fill("#key", key)
    page.get_by_role("button", name="Use this key").click()
    page.locator("#key-note", has_text="This key can read and decide").wait_for()
    assert card.get_by_label("name in the path").input_value() == "checkout"
    card.get_by_label("Body", exact=True).fill('{"mode": "explore"}')
    send.click()
    card.locator(".answer-status", has_text="201").wait_for()
    first = json.loads(card.locator(".answer").inner_text())
    assert (first["mode"], first["exploit"]) == ("explore", None)
    assert service.direct.decisions.get("local", first["id"]).result().explore == first["explore"]
    with page.expect_response("**/decisions") as repeated:
        send.click()
    assert repeated.value.status == 201
    state = service.direct.experiments.state("local", "checkout").result()
    assert state.decisions == 1, "the same idempotency key"
    card.get_by_text("The same with curl").click()
    command = card.locator("pre", has_text="curl").inner_text()
    assert key not in command
    assert "$DECOUPLED_KEY" in command
    assert '{"mode": "explore"}' in command
    card.get_by_label("Body", exact=True).fill('{"mode": "explode"}')
    send.click()
    card.locator(".answer-status", has_text="422").wait_for()
    assert "mode: Input should be" in card.locator(".answer").inner_text()
    page.get_by_role("link", name="Experiments", exact=True).click()  # the console has the same key
    page.locator(".list a", has_text="checkout").wait_for()
    page.get_by_role("link", name="API", exact=True).click()
    page.locator(".op").first.wait_for()


def test_every_body_has_an_example_that_the_service_takes(page: Any, service: Service) -> None:
    """An example is refused at most for what it is about, never for its shape."""
    admin = service.key("admin")
    opened_at(page, service)
    page.evaluate("document.querySelectorAll('.op').forEach((each) => { each.open = true; })")
    page.locator(".op textarea").last.wait_for()
    bodies = page.locator(".op:has(textarea)").evaluate_all(
        "all => all.map((each) => [each.querySelector('.method').textContent, "
        "each.querySelector('.path').textContent, each.querySelector('textarea').value])"
    )
    assert len(bodies) >= 10
    for method, path, body in bodies:
        address = (
            path.replace("{name}", "checkout")
            .replace("{id}", "none-1")
            .replace("{key}", "checkout")
        )
        answer = service.http.request(method, address, json=json.loads(body), headers=admin)
        assert '"errors"' not in answer.text, (path, answer.text)


def test_names_are_text(page: Any, service: Service, tmp_path: Path) -> None:
    document = json.loads(json.dumps(openapi_document()))  # a copy
    document["paths"]["/v1/feedback"]["post"]["summary"] = '<img src=x onerror="window.hurt=1">'
    page.route("**/v1/openapi.json", lambda route: route.fulfill(json=document))
    card = opened_at(page, service, "post-v1-feedback")
    assert '<img src=x onerror="window.hurt=1">' in card.inner_text()
    assert page.evaluate("window.hurt") is None
