"""The page where a person labels answers, in a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.http_service import Service

PHONE = {"width": 390, "height": 844}
HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'
SECRET_ARMS = ["arm-alpha", "arm-omega"]


def kept(service: Service, name: str, answers: list[tuple[str, str]]) -> list[str]:
    """Pairs that await a label; the ids of their decisions."""
    service.create(name, arms=SECRET_ARMS, labels={"share": 1.0})
    ids = []
    for number, (exploit, explore) in enumerate(answers):
        ids.append(service.decide(name)["id"])
        service.http.put(f"/v1/decisions/{ids[-1]}/feedback", json={"judged": 0.5})
        body = {"title": "POST /chat", "request": f"Question {number}"}
        body |= {"exploit": exploit, "explore": explore}
        assert service.http.put(f"/v1/decisions/{ids[-1]}/pair", json=body).status_code == 200
    return ids


def loss(service: Service, id: str) -> Any:  # noqa: A002
    return service.http.get(f"/v1/decisions/{id}").json()["loss"]


@pytest.fixture
def page(browser: Any, service: Service) -> Iterator[Any]:
    context = browser.new_context()
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "console", lambda said: complaints.append(said.text) if said.type == "error" else None
    )
    yield opened
    assert [each for each in complaints if "status of" not in each] == []
    assert opened.evaluate("window.hurt") is None
    context.close()


def first_is_explored(page: Any) -> bool:
    return str(page.locator("[aria-labelledby=answer-first] .text").inner_text()).startswith(
        "explored"
    )


def test_a_person_labels_with_the_keys_1_2_and_t(page: Any, service: Service) -> None:
    ids = kept(service, "keys", [(f"exploited {n}", f"explored {n}") for n in range(4)])
    page.goto(f"{service.url}/#experiments/keys")
    page.get_by_role("link", name="Label answers").click()
    for number, wanted in enumerate((0.0, 1.0, 0.5)):
        page.get_by_text(f"Question {number}", exact=True).wait_for()
        assert not any(arm in page.content() for arm in SECRET_ARMS), (
            "a person must not know the arms"
        )
        assert ids[number] not in page.content()
        better_first = first_is_explored(page) == (wanted == 0.0)
        page.keyboard.press("Control+1")  # the browser's own key
        page.keyboard.press("t" if wanted == 0.5 else "1" if better_first else "2")
    page.get_by_text("Question 3", exact=True).wait_for()
    assert [loss(service, id) for id in ids] == [0.0, 1.0, 0.5, None]  # noqa: A001
    page.get_by_role("button", name="Tie").click()
    page.get_by_text("Nothing awaits a label now.").wait_for()
    assert loss(service, ids[3]) == 0.5


def test_answers_are_text_and_it_works_on_a_phone(page: Any, service: Service) -> None:
    long = "A long answer. " * 200
    [id] = kept(service, "phone", [(f"{HOSTILE}\n\n{long}", f"{HOSTILE} {'x' * 400}")])  # noqa: A001
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    page.goto(f"{service.url}/#label/phone")
    page.get_by_text("Question 0", exact=True).wait_for()
    assert page.locator(".answers img, .answers script").count() == 0
    assert page.locator(".text", has_text="<script>").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for button in page.locator(
        ".choices button"
    ).all():  # in reach without scrolling, and large enough for a thumb
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= PHONE["height"]
    page.get_by_role("button", name="Answer 2").click()
    page.get_by_text("Nothing awaits a label now.").wait_for()
    assert loss(service, id) in (0.0, 1.0)


def test_two_people_see_two_pairs_also_after_a_reload(
    page: Any, service: Service, browser: Any
) -> None:
    kept(service, "people", [("exploited", "explored")] * 2)
    # From here on the service asks for keys, so this test is the last.
    admin, keys = service.key("admin"), [service.key("label") for _ in range(2)]
    service.http.headers.update(admin)
    others = browser.new_context()
    try:
        seen = []
        for tab, key in zip((page, others.new_page()), keys, strict=True):
            tab.goto(service.url)
            tab.get_by_label("This service requires an API key").fill(
                key["Authorization"].split()[1]
            )
            tab.get_by_role("button", name="Use this key").click()
            # There is nothing else for such a key. The list of experiments, gone in a moment, has the label too.
            tab.get_by_role("textbox", name="Experiment", exact=True).fill("people")
            assert tab.locator("#key-note").inner_text() == "This key can only label"
            tab.get_by_role("button", name="Start").click()
            seen.append(tab.locator("[aria-label=Request] .text").inner_text())
        assert set(seen) == {"Question 0", "Question 1"}
        page.reload()
        assert page.locator("[aria-label=Request] .text").inner_text() == seen[0]
        service.http.post(
            "/v1/experiments/people/pairs/lease", headers=keys[0]
        )  # as in another tab
        page.keyboard.press("1")
        page.locator(".problem", has_text="run out").wait_for()
        page.get_by_text(seen[0], exact=True).wait_for()  # and it goes on by itself
        page.keyboard.press("t")
        page.get_by_text("Others are labelling what is left.").wait_for()
    finally:
        others.close()
