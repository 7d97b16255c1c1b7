"""The console in a real browser: what a visitor does with it, and what it must never do."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from decoupled_serve.service.console import FILES, PATHS
from support.held_compiler import Held
from support.http_service import Service, served

HOSTILE = [
    '<img src=x onerror="window.hurt=1">',
    "\"'><script>window.hurt=1</script>",
    "{{7*7}}</td></table>",
]
PHONE = {"width": 390, "height": 844}
COMPILING = 90_000  # milliseconds: a policy may be new to this machine


@dataclass
class Tab:
    """A page, all that it asked for, and all that went wrong on it."""

    page: Any
    url: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)  # requests that may change something
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._heard: dict[str, Callable[[Any], None]] = {
            "pageerror": lambda error: self.complaints.append(str(error)),
            "console": lambda said: self.complaints.append(f"{said.type}: {said.text}"),
            "request": self._noted,
            "response": self._answered,
            "requestfailed": self._failed,
            "dialog": lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"),
        }
        for event, handle in self._heard.items():
            self.page.on(event, handle)

    def leave(self) -> None:
        """Clear the page for another tab."""
        self.page.goto("about:blank")
        for event, handle in self._heard.items():
            self.page.remove_listener(event, handle)
        self.page.unroute_all()
        self.page.emulate_media(color_scheme="null", reduced_motion="null")

    def _noted(self, request: Any) -> None:
        self.requests.append(request.url)
        if request.method != "GET":
            self.changes.append(f"{request.method} {request.url}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400:
            self.refused.append(f"{response.status} {response.url}")

    def _failed(self, request: Any) -> None:
        # Chromium calls every body aborted that a script reads piece by piece, and what a reload interrupts.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"{request.url}: {request.failure}")

    def open(self, view: str) -> Any:
        self.page.goto(f"{self.url}/#{view}")
        return self.page

    def tile(self, name: str) -> float:
        text = self.page.locator(f"[data-tile={name}]").inner_text()
        return float(text.replace(",", "")) if re.search(r"\d", text) else -1.0

    def expect_refusals(self, *statuses: int) -> None:
        """Chromium logs every refused request; those that a test brings about are no fault."""
        told = [f"status of {status}" for status in statuses]
        self.complaints = [
            each for each in self.complaints if not any(words in each for words in told)
        ]

    def until(self, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        for _ in range(int(seconds / 0.1)):
            if holds():
                return
            self.page.wait_for_timeout(100)
        pytest.fail(f"it did not come within {seconds} s")


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    """One page for most tests: a new one takes more time than what they do with it."""
    return browser.new_page()


@pytest.fixture
def tab(page: Any, service: Service) -> Iterator[Tab]:
    page.set_viewport_size({"width": 1280, "height": 900})
    opened = Tab(page, service.url)
    yield opened
    opened.leave()
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(f"{service.url}/")] == []


def slide(page: Any, name: str, value: float) -> None:
    page.locator(f"#{name}").evaluate(
        "(e, value) => { e.value = value; e.dispatchEvent(new Event('input', {bubbles: true})); }",
        str(value),
    )


def test_by_keyboard_alone_from_nothing_to_a_live_experiment(tab: Tab, service: Service) -> None:
    page = tab.open("")
    page.get_by_role("link", name="Create an experiment").wait_for()
    assert page.get_by_role("link", name="Create a demo experiment").is_visible(), (
        "a way without data"
    )
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Create an experiment":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "where the keyboard is can be seen"
    page.keyboard.press("Enter")
    page.locator("#policy option", has_text="Exp3").wait_for(state="attached")
    tab.until(lambda: page.evaluate("document.activeElement.value") == "experiment-1")
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")  # to FTPL, the second of the policies
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.locator("table.arms tbody tr").first.wait_for(timeout=COMPILING)
    assert page.locator("h1").inner_text() == "experiment-1"
    made = service.http.get("/v1/experiments/experiment-1").json()
    assert (made["policy"]["name"], made["arms"]) == ("FTPL", ["control", "variant-a", "variant-b"])
    assert made["policy"]["ranking"] == "auto"
    assert made["demo"] is False


def test_arms_come_and_go_the_log_is_saved_and_the_end_is_confirmed(
    tab: Tab, service: Service
) -> None:
    service.create("managed", arms=["red", "green"])
    service.http.post("/v1/experiments/managed/decisions", json={"count": 3})
    page = tab.open("experiments/managed")
    page.get_by_text("Add or retire arms").click()
    page.fill("#names", "blue\n <b>grey</b> ")
    page.get_by_role("button", name="Add arms").click()
    page.get_by_role("button", name="Add now").click()
    page.get_by_text("Added: blue, <b>grey</b>.").wait_for()
    assert page.evaluate("document.activeElement.id") == "managed", (
        "the keyboard stays where it was"
    )
    tab.until(lambda: page.locator("table.arms tbody tr").count() == 4)
    page.fill("#names", "red")
    page.get_by_role("button", name="Retire arms").click()
    page.get_by_role("button", name="Retire permanently").click()
    page.get_by_text("Retired: red.").wait_for()
    page.fill("#names", "violet")
    page.get_by_role("button", name="Retire arms").click()
    page.get_by_role("button", name="Retire permanently").click()
    page.locator(".problem", has_text="violet").wait_for()
    assert "violet" in page.locator(".problem:visible").inner_text()
    assert service.http.get("/v1/experiments/managed").json()["arms"] == [
        "green",
        "blue",
        "<b>grey</b>",
    ]
    tab.expect_refusals(422)

    with page.expect_download() as saved:
        page.get_by_role("button", name="Download log as CSV").click()
    assert saved.value.suggested_filename == "managed.csv"
    assert len(Path(saved.value.path()).read_text().splitlines()) == 4

    page.get_by_role("button", name="Archive …").click()
    page.get_by_role("button", name="Keep it").click()
    assert not page.locator("#yes").is_visible()
    page.get_by_role("button", name="Archive …").click()
    page.get_by_role("button", name="Archive permanently").click()
    page.locator(".badge", has_text="archived").wait_for()
    assert service.http.get("/v1/experiments/managed").json()["archived_at"] is not None
    assert page.get_by_role("button", name="Archive …").count() == 0


def test_what_changes_a_live_experiment_is_asked_twice_and_by_name(
    tab: Tab, service: Service
) -> None:
    service.create("asked-twice", arms=["red", "green", "blue"])
    page = tab.open("experiments/asked-twice")
    page.get_by_text("Add or retire arms").click()
    asked = "Retire red from asked-twice? Decisions no longer name a retired arm."
    for fill, start, words, answer in (
        ("red", "Retire arms", asked, "Cancel"),
        ("violet", "Add arms", "Add violet to asked-twice?", "Cancel"),
        (None, "Archive …", "Archive asked-twice? It will make no more decisions", "Keep it"),
    ):
        if fill is not None:
            page.fill("#names", fill)
        page.get_by_role("button", name=start).click()
        assert words in page.locator(".sure").inner_text()
        assert page.evaluate("document.activeElement.textContent") == answer, (
            "Enter twice changes nothing"
        )
        page.keyboard.press("Enter")
        assert not page.locator(".sure").is_visible()
        page.get_by_role("button", name=start).click()
        page.keyboard.press("Escape")
        assert not page.locator(".sure").is_visible()
    page.fill("#names", "  ")
    page.get_by_role("button", name="Retire arms").click()
    assert page.locator(".problem:visible").inner_text() == "Enter at least one arm."
    assert tab.changes == []
    found = service.http.get("/v1/experiments/asked-twice").json()
    assert (found["arms"], found["archived_at"]) == (["red", "green", "blue"], None)


def test_the_kill_switch_is_one_click_and_a_confirmation(tab: Tab, service: Service) -> None:
    service.create("pinning", arms=["red", 7, "<b>blue</b>"])
    budget = {"share": 0.5, "cost": 1, "allowance": [2, 86400]}
    service.http.put("/v1/experiments/pinning/budget", json=budget)
    service.http.patch(
        "/v1/experiments/pinning/guardrails", json={"floors": {"7": 0.1}, "down": ["red"]}
    )
    service.decide("pinning", count=20)
    page = tab.open("experiments/pinning")
    page.locator("#regret").wait_for()  # and with it the history, which moves what is below it
    page.locator("#pin-arm").select_option(label="<b>blue</b>")
    page.get_by_role("button", name="Pin …", exact=True).click()
    assert (
        "Pin <b>blue</b> in pinning? Every decision uses it" in page.locator(".sure").inner_text()
    )
    page.keyboard.press("Enter")  # the safe answer
    assert tab.changes == []
    page.get_by_role("button", name="Pin …", exact=True).click()
    page.get_by_role("button", name="Pin now").click()
    page.locator("#pinned").wait_for()
    assert "every decision uses <b>blue</b>" in page.locator("#pinned").inner_text()
    assert len(tab.changes) == 1
    assert {each["exploit"] for each in service.decide("pinning", count=5)["decisions"]} == {
        "<b>blue</b>"
    }
    rules = page.locator("#guardrails .rules li").all_inner_texts()
    assert rules == ["At least 10.0% of the decisions use 7.", "Down: red."]
    tab.until(lambda: page.locator("[data-used=allowance]").inner_text() == "2.00")
    tab.until(lambda: page.locator("[data-left=allowance]").inner_text() == "0.00")
    assert "2.00 in a day" in page.locator("#guardrails table").inner_text()
    page.locator("nav a, .list a", has_text="pinned").wait_for()
    # Another visitor's change shows up by itself.
    service.http.patch("/v1/experiments/pinning/guardrails", json={"pinned": None})
    page.get_by_role("button", name="Pin …", exact=True).wait_for()
    service.http.patch("/v1/experiments/pinning/guardrails", json={"pinned": 7})
    page.get_by_role("button", name="Unpin …").click()
    page.get_by_role("button", name="Unpin now").click()
    page.get_by_text("Unpinned.").wait_for()
    assert service.http.get("/v1/experiments/pinning").json()["guardrails"]["pinned"] is None


def test_guardrails_and_the_budget_are_changed_by_forms(tab: Tab, service: Service) -> None:
    rules = {"pinned": "red", "floors": {"a: b": 0.1}}
    service.create("changing", arms=["red", 7, "a: b"], guardrails=rules)
    page = tab.open("experiments/changing")
    rules, budget = page.locator("#change-guardrails"), page.locator("#change-budget")
    page.get_by_text("Change the guardrails", exact=True).click()
    assert page.input_value("#guardrails-floors") == "a: b: 0.1"
    rules.get_by_role("button").click()
    assert rules.locator(".problem").inner_text() == "Change a field first."
    page.fill("#guardrails-floors", "7: 2")
    page.fill("#guardrails-incumbent", "7")
    page.fill("#guardrails-down", "a: b")
    rules.get_by_role("button", name="Change guardrails").click()
    asked = rules.locator(".sure").inner_text()
    assert 'incumbent: null → 7, floors: {"a: b":0.1} → {"7":2}, down: null → ["a: b"]' in asked
    assert tab.changes == []
    page.get_by_role("button", name="Change now").click()
    rules.locator(".problem", has_text="floors").wait_for()
    tab.expect_refusals(422)
    assert service.http.get("/v1/experiments/changing").json()["guardrails"]["incumbent"] is None
    page.fill("#guardrails-floors", "7: 0.2")
    rules.get_by_role("button", name="Change guardrails").click()
    page.get_by_role("button", name="Change now").click()
    page.get_by_text("Changed the guardrails.").wait_for()
    found = service.http.get("/v1/experiments/changing").json()["guardrails"]
    assert (found["pinned"], found["incumbent"], found["floors"], found["down"]) == (
        "red", 7, {"7": 0.2}, ["a: b"],
    )  # fmt: skip

    for fields, wanted in (
        (
            {"share": "0.5", "rate": "100", "rate-seconds": "60"},
            {"share": 0.5, "rate": [100, 60.0]},
        ),
        (
            {"rate": "", "rate-seconds": "", "cost": "red: 2\n7: 0.5", "total": "40"},
            {"share": 0.5, "rate": None, "cost": {"red": 2.0, "7": 0.5}, "total": 40.0},
        ),
    ):
        page.get_by_text("Change the budget", exact=True).click()
        for name, text in fields.items():
            page.fill(f"#budget-{name}", text)
        budget.get_by_role("button", name="Change budget").click()
        page.get_by_role("button", name="Change now").click()
        page.get_by_text("Changed the budget.").wait_for()
        found = service.http.get("/v1/experiments/changing").json()["budget"]
        assert {name: found[name] for name in wanted} == wanted


def test_an_experiment_starts_with_guardrails_a_budget_and_labels(
    tab: Tab, service: Service
) -> None:
    page = tab.open("new")
    page.locator("#policy option", has_text="Exp3").wait_for(state="attached")
    page.fill("#name", "all-set")
    for summary, fields in (
        (
            "Verdict and guardrails",
            {"risk": "0.01", "guardrails-incumbent": "control", "guardrails-risk": "0.02"},
        ),
        ("Budget for exploring", {"budget-share": "0.25"}),
        ("Labels, if losses come from a judge", {"labels-first": "50"}),
    ):
        page.get_by_text(summary, exact=True).click()
        for name, text in fields.items():
            page.fill(f"#{name}", text)
    page.click("#create button[type=submit]")
    page.locator("#create .problem", has_text="Labels: enter a share").wait_for()
    assert tab.changes == []
    page.fill("#labels-share", "0.2")
    page.click("#create button[type=submit]")
    page.locator("table.arms tbody tr").first.wait_for(timeout=COMPILING)
    made = service.http.get("/v1/experiments/all-set").json()
    rules = made["guardrails"]
    assert (made["risk"], rules["incumbent"], rules["risk"]) == (0.01, "control", 0.02)
    assert (made["budget"]["share"], made["labels"]["share"], made["labels"]["first"]) == (
        0.25,
        0.2,
        50,
    )


def test_a_live_experiment_gets_no_made_up_losses(tab: Tab, service: Service) -> None:
    service.create("live", arms=["red", "green"])
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=service.url)
    page = tab.open("experiments/live")
    page.locator("table.arms tbody tr").first.wait_for()
    primary = page.locator(".panel .primary")
    assert primary.count() == 1
    primary.click()
    page.get_by_text("Copied.").wait_for()
    assert page.get_by_text("Test traffic").count() == 0
    assert tab.changes == []
    assert service.http.get("/v1/experiments/live/state").json()["decisions"] == 0

    example = page.evaluate("navigator.clipboard.readText()")
    assert example == page.locator("#example").inner_text()
    used: list[object] = []
    exec(example, {"use": used.append, "try_out": lambda arm: 0.25})  # what a visitor would run
    assert used[0] in ("red", "green")
    assert service.http.get("/v1/experiments/live/state").json()["applied"] == 1
    tab.until(lambda: tab.tile("applied") == 1)


def with_feedback(service: Service, name: str, count: int) -> None:
    decisions = service.decide(name, count=count)["decisions"]
    items = [
        {"decision": each["id"], "loss": float(each["explore"] == "red")} for each in decisions
    ]
    assert service.http.post("/v1/feedback", json={"items": items}).status_code == 200


def test_an_experiment_begins_with_its_verdict(tab: Tab, service: Service) -> None:
    service.create("verdict", policy={"name": "FollowTheLeader"}, guardrails={"incumbent": "red"})
    page = tab.open("experiments/verdict")
    text = page.locator("#verdict-text")
    text.get_by_text("Too early: there is no loss to judge by yet").wait_for()
    assert (
        "red, the incumbent, is used until another arm" in page.locator("#incumbent").inner_text()
    )
    for _ in range(20):
        with_feedback(service, "verdict", 20)
    tab.until(lambda: "red is out" in text.inner_text())
    tab.until(lambda: page.locator("[data-verdict=verdict]").inner_text() == "2 of 3 arms left")
    found = service.http.get("/v1/experiments/verdict/verdict").json()
    assert found["incumbent_released"] is True
    page.locator("#incumbent", has_text="was the incumbent").wait_for()
    tab.until(lambda: text.inner_text() == found["text"])
    assert page.locator("#verdict").get_attribute("data-state") == found["state"] == "narrowed"
    lines = page.locator(".panel").inner_text().splitlines()
    assert [line for line in lines if line][:3] == ["verdict", "Which arm is best?", found["text"]]
    said = page.locator("#regret").inner_text()
    regret = found["regret"]
    assert f"than always using {found['regret_against']}, which looks best now, would have" in said
    # So the two do not seem to contradict each other.
    asked = page.locator("div:has(> #regret) > h3").inner_text()
    assert asked == "What did the exploited arms cost so far?"
    assert "Which arm is best is another question: see the top of the page." in said
    assert f"{abs(regret['high']):.1f} more" in said
    assert "95%, however often you look" in said


def test_a_history_is_that_of_the_log_and_not_of_the_page(tab: Tab, service: Service) -> None:
    service.create("past", arms=["red", "green"], loss_range=[0, 250])
    for _ in range(6):
        with_feedback(service, "past", 50)
    page = tab.open("experiments/past")
    page.locator("#share-chart path[data-layer=green]").first.wait_for(state="attached")
    page.locator("#loss-chart path[data-series=red]").wait_for(state="attached")
    assert page.locator("#loss-chart path.band").count() == 2
    page.locator("#loss-chart ~ details summary").click()
    rows = page.locator("#loss-chart ~ details tbody tr")
    rows.first.wait_for()
    assert rows.first.locator("th").inner_text().startswith("300 (")
    assert rows.count() > 5
    found = service.http.get("/v1/experiments/past/verdict").json()["arms"][0]["loss"]
    shown = f"{found['estimate']:.0f} ({found['low']:.0f} to {found['high']:.0f})"
    assert rows.first.locator("td").first.inner_text() == shown


def shown_share(share: float) -> str:
    """A share that is not nothing is never shown as nothing."""
    return "< 0.1%" if 0.0 < share < 0.0005 else f"{100 * share:.1f}%"


def test_traffic_moves_the_numbers(tab: Tab, service: Service) -> None:
    service.create("moving", arms=["red", "green", "blue"], demo=True)
    page = tab.open("experiments/moving")
    tab.until(lambda: tab.tile("decisions") == 0)
    # The history comes after the tiles.
    tab.until(lambda: "No traffic" in page.locator("#share-chart").inner_text())
    slide(page, "rate", 400)
    slide(page, "total", 1200)
    page.select_option("#best", label="blue")
    slide(page, "lost", 25)
    page.click("#send")
    tab.until(lambda: 0 < tab.tile("decisions") < 1200)  # on the way
    assert page.locator("#send").inner_text() == "Stop"
    tab.until(lambda: tab.tile("decisions") == 1200)
    state = service.http.get("/v1/experiments/moving/state").json()
    assert state["decisions"] == 1200 == state["applied"] + state["pending"]
    # A quarter of the feedback never comes; 6 standard deviations each side.
    assert 210 < state["pending"] < 390
    tab.until(
        lambda: tab.tile("pending") == state["pending"] and tab.tile("applied") == state["applied"]
    )
    judged = service.http.get("/v1/experiments/moving/verdict").json()["arms"]
    losses = [
        [f"{each['loss'][end]:.2f}" for end in ("estimate", "low", "high")] for each in judged
    ]
    known = page.locator("table.arms td[data-label='Mean loss']")
    tab.until(
        lambda: [each.replace(" to", "").split() for each in known.all_inner_texts()] == losses
    )
    for i, row in enumerate(page.locator("table.arms tbody tr").all()):
        cells = [cell.strip() for cell in row.locator("th, td").all_inner_texts()]
        arm, exploit, explore, _, used, tried = cells
        assert arm == state["arms"][i]
        assert exploit == shown_share(state["exploitation"][i])
        assert explore == shown_share(state["exploration"][i])
        assert int(used.replace(",", "")) == state["plays_exploit"][i]
        assert int(tried.replace(",", "")) == state["plays_explore"][i]
    assert state["exploitation"][2] > 0.5, "the world's best arm is the one that was chosen"
    assert page.locator("#share-chart path[data-layer=blue]").count() > 0
    page.get_by_text("Show as a table").first.click()
    page.locator(".plain tbody tr").first.wait_for()  # drawn on the event that follows the click
    cells = page.locator(".plain tbody tr").first.locator("td").all_inner_texts()
    assert sum(float(cell.rstrip("%").lstrip("< ")) for cell in cells) == pytest.approx(
        100.0, abs=0.3
    )


def test_an_experiment_that_learns_by_requests_is_created(tab: Tab, service: Service) -> None:
    page = tab.open("new")
    page.locator("#policy option", has_text="ContextualLadder").wait_for(state="attached")
    page.fill("#name", "by-request")
    page.select_option("#policy", "by context")
    page.locator("#context").wait_for()
    wrong = {
        "": "needs at least one",
        "subject": "“subject” must be",
        "a: text\na: text": "“a: text”",
    }
    for text, words in wrong.items():
        page.fill("#context", text)
        page.click("#create button[type=submit]")
        page.locator("#create .problem", has_text=words).wait_for()
    assert tab.changes == []
    page.fill("#context", "subject: text\ntokens number\n\n new : boolean ")
    page.click("#create button[type=submit]")
    page.locator("table.arms tbody tr").first.wait_for(timeout=COMPILING)
    made = service.http.get("/v1/experiments/by-request").json()
    assert made["context"] == {"subject": "text", "tokens": "number", "new": "boolean"}
    assert (made["policy"]["segments"], made["policy"]["numbers"]) == (
        ["subject", "new"],
        ["tokens"],
    )


def test_a_segment_is_picked_and_its_arms_are_shown(tab: Tab, service: Service) -> None:
    service.create("aware", context={"subject": "text", "tokens": "number"})
    for subject, decisions in (("law", 3), ("<b>art</b>", 2), (None, 1)):
        for turn in range(decisions):
            made = service.decide("aware", context={"subject": subject, "tokens": 7})
            path = f"/v1/decisions/{made['id']}/feedback"
            assert service.http.put(path, json={"loss": turn / 4}).status_code == 200
    page = tab.open("experiments/aware")
    page.locator("#segments").wait_for()
    assert page.locator("#segment option").all_inner_texts() == ["law", "<b>art</b>", "(none)"]
    assert page.locator("#verdict-text").inner_text() == "Too early: no segment is decided"
    assert page.locator("#verdict-pooled").inner_text().startswith("Over all requests: too early")
    page.locator("[data-verdict=aware]", has_text="0 of 3 segments decided").wait_for()
    page.select_option("#segment", "<b>art</b>")
    page.get_by_text("from 2 losses of 2 decisions").wait_for()
    rows = page.locator("#segments tbody tr").all()
    assert [row.locator("th").inner_text() for row in rows] == ["red", "green", "blue"]
    assert sum(int(row.locator("td").last.inner_text()) for row in rows) == 2


def test_what_users_name_is_text(tab: Tab, service: Service) -> None:
    service.create("hostile", arms=HOSTILE, demo=True)
    service.http.post("/v1/experiments/hostile/decisions", json={"count": 5})
    page = tab.open("experiments/hostile")
    page.locator("table.arms tbody tr").nth(2).wait_for()
    service.http.post("/v1/experiments/hostile/decisions", json={"count": 20})
    page.locator(".legend li").nth(2).wait_for()
    assert page.locator("table.arms tbody th").all_inner_texts() == HOSTILE
    assert page.locator(".legend li").all_inner_texts() == HOSTILE
    assert page.locator("#best option").all_inner_texts() == HOSTILE
    page.evaluate(
        "location.hash = 'experiments/' + encodeURIComponent('<img src=x onerror=hurt=1>')"
    )
    page.get_by_role("heading", name="No such experiment").wait_for()
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.hurt") is None


CONTRAST = """() => {
  const shade = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = shade(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.checkVisibility() || node.closest("noscript, button:disabled, option")) continue;
    const style = getComputedStyle(node);
    const ink = shade(node instanceof SVGElement ? style.fill : style.color);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const [a, b] = [luminance(ink), luminance(behind(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) poor.push(`${walker.currentNode.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return [seen, poor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_a_phone_and_can_be_read(tab: Tab, service: Service, scheme: str) -> None:
    name = f"a-name-that-is-as-long-as-a-name-may-be-{scheme}-" + "x" * 50
    service.create(name, arms=["plain", "an-arm-with-a-very-long-name-" + "y" * 150])
    page = tab.page
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    for view, ready in (
        ("", "main .list li, main .empty"),
        ("new", "#policy option:nth-child(2)"),
        (f"experiments/{name}", "#share-chart svg"),
    ):
        tab.open(view)
        if view.startswith("experiments/"):
            page.locator("table.arms tbody tr").first.wait_for()
            service.http.post(f"/v1/experiments/{name}/decisions", json={"count": 50})
        page.locator(ready).first.wait_for(state="attached", timeout=COMPILING)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"], f"{view}: {wide} pixels"
        seen, poor = page.evaluate(CONTRAST)
        assert seen > 8
        assert poor == [], f"{view} in the {scheme}"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 150) == (scheme == "dark")


def made(service: Service, role: str) -> dict[str, str]:
    # In a thread of its own: the browser's driver has an event loop in this one, which the service would answer.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(service.key, role).result()


def test_what_compiles_says_so_until_it_can_decide(page: Any, tmp_path: Path) -> None:
    held = Held()
    with served(tmp_path, compiler=held, patience=0.0) as cold:
        body = {"policy": {"name": "FTPL"}, "arms": ["red", "green"]}
        assert cold.http.put("/v1/experiments/slow", json=body).status_code == 202
        tab = Tab(page, cold.url)
        tab.open("experiments/slow")
        page.get_by_text("The service is compiling the policy of this experiment.").wait_for()
        assert page.locator("h1 + .badge").inner_text() == "compiling…"
        page.locator("aside .list", has_text="compiling…").wait_for()
        held.let_go()
        tab.until(lambda: tab.tile("decisions") == 0.0)
        assert page.locator("h1 + .badge").count() == 0
        assert "compiling" not in page.locator("#view, main").first.inner_text()
        tab.leave()
        assert tab.complaints == [], "not even 503 was met"


def test_home_is_the_only_experiment_and_a_mirrors_says_what_it_is(
    page: Any, tmp_path: Path
) -> None:
    with served(tmp_path, mirror="requests") as mirroring:
        mirroring.create("requests")
        tab = Tab(page, mirroring.url)
        tab.open("")
        page.locator("h1", has_text="requests").wait_for()
        assert page.locator(".list a[aria-current]").inner_text().startswith("requests")
        assert "needs no other code" in page.locator("#mirrored").inner_text()
        assert page.locator("#example").count() == 0
        mirroring.create("other")
        tab.open("experiments/other")
        page.locator("#example").wait_for()
        assert page.locator("#mirrored").count() == 0
        tab.open("")
        page.get_by_text("Choose an experiment").wait_for()
        tab.leave()
        assert tab.complaints == []


def test_a_key_stays_in_its_tab(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, open_to_all=False) as locked:
        key = made(locked, "admin")["Authorization"].removeprefix("Bearer ")
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{locked.url}/")
        page.locator("#key").fill(key)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Create an experiment").wait_for()
        assert not page.locator("#key-form").is_visible()
        kept = page.evaluate(
            "[Object.values(sessionStorage), localStorage.length, document.cookie]"
        )
        assert kept == [[key], 0, ""]
        page.reload()
        page.get_by_role("link", name="Create an experiment").wait_for()
        other = context.new_page()
        other.goto(f"{locked.url}/")
        other.locator("#key").wait_for()
        page.click("#key-forget")
        page.locator("#key").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        context.close()


BUTTONS = "main button:visible, main a.button:visible"


@pytest.mark.parametrize(("role", "note"), [
    ("read", "This key is read-only"), ("decide", "This key can read and decide"), ("admin", None),
])  # fmt: skip
def test_only_what_a_key_may_do_is_offered(
    page: Any, tmp_path: Path, role: str, note: str | None
) -> None:
    with served(tmp_path, open_to_all=False) as locked:
        admin = made(locked, "admin")
        key = made(locked, role)["Authorization"].removeprefix("Bearer ")
        tab = Tab(page, locked.url)
        tab.open("")
        page.locator("#key").fill("dk_wrong")
        page.keyboard.press("Enter")
        page.get_by_text("This key is unknown or was revoked.").wait_for()
        page.locator("#key").fill(key)
        page.keyboard.press("Enter")
        page.get_by_text("There are no experiments yet").wait_for()
        assert (page.get_by_role("link", name="Create an experiment").count() > 0) == (
            role == "admin"
        )
        tab.open("new")
        page.get_by_role("heading", name="New experiment").wait_for()
        assert (page.locator("#create").count() > 0) == (role == "admin")
        tab.refused.clear()

        for name in ("for-real", "for-show"):
            locked.create(name, admin, demo=name == "for-show")
            tab.open(f"experiments/{name}")
            page.locator("table.arms tbody tr").first.wait_for()
            buttons = page.locator(BUTTONS).all_inner_texts()
            wanted = ["Download log as CSV", "Download log as Parquet"]
            trials = {
                "for-show": ["Draw 10 times", "Send test traffic"],
                "for-real": ["Copy the example"],
            }
            wanted += trials[name] if role != "read" else []
            if role == "admin":
                wanted += ["New", "Archive …", "Pin …"]  # those of forms are folded away
            assert sorted(buttons) == sorted(wanted)
            assert (page.get_by_text("Add or retire arms").count() > 0) == (role == "admin")
            if note is None:
                assert not page.locator("#key-note").is_visible()
            else:
                assert page.locator("#key-note").inner_text() == note
            if role == "read":
                with page.expect_download():
                    page.get_by_role("button", name="Download log as CSV").click()
        assert tab.refused == []
        page.click("#key-forget")
        page.get_by_text("requires an API key. Enter one above.").wait_for()
        assert not page.locator("#key-note").is_visible()
        tab.leave()


def answered(body: str) -> Callable[[Any], None]:
    return lambda route: route.fulfill(status=200, body=body)


def test_every_failure_is_told_in_words(tab: Tab, service: Service) -> None:
    page = tab.page
    page.route("**/console/policies.json", lambda route: route.fulfill(status=502, body="<html>"))
    tab.open("new")
    problem = page.locator(".problem:visible")
    problem.wait_for()
    assert (
        problem.inner_text()
        == "The list of policies could not be loaded. The service answered 502."
    )
    assert page.locator("#custom").is_visible(), "a policy can still be given"

    page.route("**/v1/access", lambda route: route.abort())
    page.reload()
    problem.wait_for()
    assert problem.inner_text() == "The service does not respond. Is it running?"
    page.unroute("**/v1/access")
    page.get_by_role("button", name="Try again").click()
    page.locator("#create").wait_for()

    page.route("**/state", answered("<html>"))
    service.create("unreadable")
    tab.open("experiments/unreadable")
    problem.wait_for()
    assert "could not be read" in problem.inner_text()
    page.unroute("**/state")
    page.locator("table.arms tbody tr").first.wait_for()

    tab.open("experiments/100%25%")
    page.get_by_role("heading", name="No such experiment").wait_for()
    tab.expect_refusals(502)
    tab.complaints = [each for each in tab.complaints if "ERR_FAILED" not in each]


def test_the_files_need_no_key_and_allow_nothing_from_elsewhere(tmp_path: Path) -> None:
    assert {"/", "/console/console.css", "/console/main.js", "/console/policies.json"} <= PATHS
    with served(tmp_path, open_to_all=False) as locked:
        for path, (content, kind) in FILES.items():
            answer = locked.http.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
            assert answer.content == content
            rules = answer.headers["content-security-policy"]
            assert "default-src 'none'" in rules
            assert "unsafe" not in rules
            assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", content), path
        assert locked.http.post("/", json={}).status_code == 405
        assert locked.http.get("/console/../app.py").status_code in (401, 404)
        assert locked.http.get("/console/__init__.py").status_code == 401
        paths = locked.http.get("/v1/openapi.json", headers=made(locked, "read")).json()["paths"]
        assert "/" not in paths
        assert "/v1/experiments" in paths
