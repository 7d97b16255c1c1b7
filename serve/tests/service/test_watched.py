"""A watched service: its verdicts, intervals and gates are those of a learner, and survive restarts, upgrades and retention."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.client.errors import Invalid
from decoupled.inference import Sequences, verdict
from decoupled.learner.losses import LossRange
from decoupled_serve.service.analysis.history import MOST_ARMS, MOST_POINTS
from decoupled_serve.service.experiment.records import Feedback, Settings, moment
from decoupled_serve.service.experiment.watched import Judged, WatchedExperiment, gate_of
from decoupled_serve.service.service import DecisionService
from support.command_line import run
from support.http_service import Service
from support.stores import Opened, both_stores, faults, quick_service
from support.waiting import Clock

ARMS = ("a", "b", "c")
MEANS = {"a": 0.1, "b": 0.6, "c": 0.8, "d": 0.3}


def create(service: DecisionService, policy: str = "FTPL", **settings: Any) -> None:
    wanted = Settings({"name": policy}, ARMS, **{"patience": 20, **settings})
    service.experiments.put("me", "one", wanted, seed=7).result()


def judged(service: DecisionService) -> Judged:
    return service.verdicts.get("me", "one").result()


def timeless(found: Judged) -> Judged:
    """Without the experiment's tag and the time, which are others in another store."""
    told = found.verdict
    number = None if told.waiting_for is None else told.waiting_for.rpartition("-")[2]
    remark = None if told.remark is None else told.remark.partition(" wait")[0]
    return replace(
        found, verdict=replace(told, waiting_for=number, waiting_until=None, remark=remark)
    )


def use(service: DecisionService, rounds: int, seed: int = 1, **wanted: Any) -> None:
    """Decide in batches; some feedback never comes, some decisions only exploit or explore."""
    noise = np.random.default_rng(seed)
    for turn in range(rounds // 10):
        made = service.decisions.decide("me", "one", count=10, **wanted).result()
        if turn % 5 == 4 and not wanted:
            service.decisions.decide("me", "one", mode="exploit").result()
            made += service.decisions.decide("me", "one", mode="explore").result()
            arms = service.experiments.get("me", "one").result().arms
            made += service.decisions.decide("me", "one", available=arms[:2]).result()
        seen = [
            Feedback(each.id, float(noise.random() < MEANS[str(each.explore)]))
            for each in made
            if noise.random() < 0.9
        ]
        service.decisions.feedback_many("me", seen[::-1]).result()


@pytest.mark.parametrize("drift", [True, False])
def test_a_verdict_is_that_of_a_watched_learner(file: str, drift: bool) -> None:
    service = quick_service(file)
    create(service, risk=0.1, drift=drift)
    learner = dc.FTPL().start(ARMS, 7)
    learner.watch(0.1, drift=drift)
    noise = np.random.default_rng(1)
    for _ in range(150):
        [made], twin = service.decisions.decide("me", "one").result(), learner.decide()
        loss = float(noise.random() < MEANS[str(made.explore)])
        service.decisions.feedback("me", made.id, loss=loss).result()
        learner.observe(twin, loss)
    found = judged(service)
    assert found.verdict == learner.inference.verdict()
    assert {each.arm: each.loss for each in found.arms} == learner.inference.intervals()
    assert (found.exploited, found.regret) == (
        learner.inference.exploited(),
        learner.inference.regret(),
    )
    assert found.regret == service.experiments.state("me", "one").result().regret
    assert (found.risk, found.drift, found.observed, found.since) == (0.1, drift, 150, None)
    assert found.regret_against == "a"
    assert judged(service) is found, "nothing was learned, so nothing is computed"


def test_losses_count_in_the_order_of_decisions(file: str) -> None:
    """Also with an incumbent, for segments, and if some never come."""
    service = quick_service(file)
    rules = dc.Guardrails(incumbent="b")
    create(service, patience=15, guardrails=rules, context={"half": "text"})
    learner = dc.FTPL().start(ARMS, 7)
    learner.watch(patience=15)
    learner.guardrails = rules
    noise = np.random.default_rng(1)
    for turn in range(60):
        context = {"half": "first" if turn < 30 else "second"}
        made = service.decisions.decide("me", "one", count=10, context=context).result()
        twins = learner.decide(count=10)
        for place in noise.permutation(10)[: 10 if turn == 59 else 9].tolist():
            loss = float(noise.random() < MEANS[str(made[place].explore)])
            service.decisions.feedback("me", made[place].id, loss=loss).result()
            learner.observe(twins[place], loss)
    found = judged(service)
    assert found.verdict == learner.inference.verdict()
    assert (found.verdict.left_out, found.observed) == (59, 541)
    assert found.incumbent_released == learner.inference.incumbent_released
    segments = service.logs.segments("me", "one", ["half"]).result().segments
    assert sum(each.verdict.left_out for each in segments) == 59
    assert sum(each.observed for each in segments) == 541


def test_a_verdict_is_new_when_a_decision_is_left_out(file: str) -> None:
    service = quick_service(file)
    create(service, patience=5)
    held, *rest = service.decisions.decide("me", "one", count=3).result()
    for each in rest:
        service.decisions.feedback("me", each.id, loss=0.5).result()
    waits = (
        f"2 losses wait for that of decision {held.id}, for at most 3 more decisions, or until 20"
    )
    assert judged(service).verdict.text.startswith(f"too early: {waits}")
    service.decisions.decide("me", "one", count=3).result()
    found = judged(service)
    assert (found.observed, found.verdict.left_out, found.verdict.waiting) == (2, 1, 0)
    service.decisions.feedback("me", held.id, loss=0.5).result()
    assert service.experiments.state("me", "one").result().applied == 3, "the policy learns from it"
    assert judged(service).observed == 2
    with pytest.raises(Invalid, match="patience = 0"):
        service.experiments.put("me", "two", Settings({"name": "FTPL"}, ARMS, patience=0)).result()


@pytest.mark.parametrize("snapshot_every", [7, 100_000])
def test_the_evidence_gives_up_by_rows_of_the_log_which_replay_to_the_bit(
    opened: Opened, clock: Clock, address: str, snapshot_every: int
) -> None:
    service = opened(snapshot_every=snapshot_every)
    create(service, patience=1_000)
    use(service, 100, mode="both")  # some are never answered
    clock.now += 3_600.0
    before = judged(service)
    assert (before.observed + before.verdict.left_out, before.verdict.waiting) == (100, 0)
    [held] = service.decisions.decide("me", "one").result()
    clock.now += 1_800.0
    for _ in range(20):
        [made] = service.decisions.decide("me", "one").result()
        service.decisions.feedback("me", made.id, loss=0.5).result()
    [other] = service.decisions.decide("me", "one").result()
    clock.now += 1_799.0
    found = judged(service).verdict
    assert (found.observed, found.waiting, found.left_out) == (
        before.observed,
        20,
        before.verdict.left_out,
    )
    assert (found.waiting_for, found.waiting_decisions) == (held.id, 979)
    assert found.waiting_until == moment(clock.now + 1.0)
    assert f"or until {found.waiting_until}" in (found.remark or "")
    clock.now += 1.0
    found = judged(service).verdict
    assert (found.observed, found.waiting, found.waiting_for) == (before.observed + 20, 0, None)
    assert (found.left_out, found.is_provisional) == (before.verdict.left_out + 1, True)
    assert "provisional" in found.text
    late = service.decisions.feedback("me", held.id, loss=0.9).result()
    assert late.status == "applied", "the policy learns from it"
    service.decisions.feedback("me", other.id, loss=0.1).result()
    last = judged(service)
    assert (last.observed, last.verdict.left_out) == (before.observed + 21, found.left_out)
    state = service.experiments.state("me", "one").result()
    service.close()
    assert faults(address) == []
    again = opened(snapshot_every=snapshot_every)
    assert judged(again) == last
    assert again.experiments.state("me", "one").result() == state
    again.close()


@both_stores
def test_feedback_after_the_wait_is_not_evidence_even_if_nobody_looked(
    opened: Opened, clock: Clock
) -> None:
    service = opened()
    create(service, patience=1_000)
    [held] = service.decisions.decide("me", "one").result()
    clock.now += 3_600.0
    service.decisions.feedback("me", held.id, loss=0.5).result()
    found = judged(service)
    assert (found.observed, found.verdict.left_out, found.verdict.is_provisional) == (0, 1, True)
    assert service.experiments.state("me", "one").result().applied == 1


@pytest.mark.parametrize("policy", ["FTPL", "Ladder", "TsallisINF", "TopTwo", "UCB1"])
def test_sequences_survive_restarts_and_replay_bit_for_bit(file: str, policy: str) -> None:
    whole, parts = quick_service(f"{file}-whole"), quick_service(file, snapshot_every=40)
    coupled = policy == "UCB1"
    for service in (whole, parts):
        create(service, policy)
    for turn in range(3):
        for service in (whole, parts):
            use(service, 60, seed=turn, **({"mode": "both"} if coupled else {}))
            if turn == 0:
                service.experiments.add_arms("me", "one", ["d"]).result()
            if turn == 1:
                service.experiments.retire_arms("me", "one", ["b"]).result()
        parts.close()
        parts = quick_service(file, snapshot_every=40)
    assert timeless(judged(parts)) == timeless(judged(whole))
    assert [each.arm for each in judged(parts).arms] == ["a", "c", "d"]
    for service in (whole, parts):
        service.close()
    assert faults(file) == []


def test_decisions_of_one_round_on_both_sides_of_a_restart_share_their_law(file: str) -> None:
    for _ in range(2):
        service = quick_service(file)
        create(service)
        service.decisions.decide("me", "one", count=3).result()
        service.close()
    assert faults(file) == []


def test_expired_decisions_count_as_the_loss_that_was_set_for_them(file: str, clock: Clock) -> None:
    service = quick_service(file, clock=clock)
    create(service, deadline=10.0, expired_loss=1.0)
    service.decisions.decide("me", "one", count=30).result()
    clock.now += 20.0
    found = judged(service)
    assert found.observed == 30
    assert {each.loss.estimate for each in found.arms} == {1.0}


def test_the_snapshot_at_the_start_of_a_log_has_the_sequences(file: str, clock: Clock) -> None:
    service = quick_service(file, clock=clock, snapshot_every=50)
    create(service)
    use(service, 100)
    clock.now += 100.0
    assert service.logs.retention("me", "one", clock.now - 50.0).result() > 0
    assert judged(service).since is None
    use(service, 50, seed=2)
    before = judged(service)
    service.close()
    assert faults(file) == []
    service = quick_service(file, clock=clock)
    assert judged(service) == before


def test_a_history_ends_in_what_is_shown_now_and_goes_on_where_it_stopped(opened: Opened) -> None:
    service = opened()
    create(service)
    history = service.logs.history("me", "one").result()
    assert (history.points, history.arms) == ((), ARMS)
    use(service, 100)
    service.logs.history("me", "one").result()
    service.experiments.add_arms("me", "one", ["d"]).result()
    use(service, 100, seed=2)
    service.logs.history("me", "one").result()
    service.experiments.retire_arms("me", "one", ["c"]).result()
    use(service, 100, seed=3)
    history = service.logs.history("me", "one", points=50).result()
    found, state = judged(service), service.experiments.state("me", "one").result()
    assert (history.arms, history.retired) == ((*ARMS, "d"), (False, False, True, False))
    last, at = history.points[-1], [0, 1, 3]
    shown = tuple(each.loss if each.observed else None for each in found.arms)
    assert tuple(last.losses[i] for i in at) == shown
    assert tuple(last.exploited[i] for i in at) == state.plays_exploit
    assert tuple(last.explored[i] for i in at) == state.plays_explore
    assert (last.decisions, last.observed) == (state.decisions, state.applied)
    assert len(history.points) == 50
    assert history.points[0].losses[3] is None
    fresh = opened().logs.history("me", "one", points=MOST_POINTS).result()
    assert fresh == service.logs.history("me", "one", points=MOST_POINTS).result()
    service.experiments.archive("me", "one").result()
    ended = opened().logs.history("me", "one", points=MOST_POINTS).result()
    assert ended.points[-1].losses == last.losses


@pytest.mark.parametrize("policy", ["TopTwo", "UCB1", "Ladder"])
def test_a_history_shows_what_was_shown_at_the_time(file: str, policy: str) -> None:
    service = quick_service(file)
    create(service, policy)
    shown = []
    for turn in range(4):
        use(service, 30, seed=turn, mode="both")
        now = judged(service)
        applied = service.experiments.state("me", "one").result().applied
        shown.append((applied, tuple(each.loss if each.observed else None for each in now.arms)))
    points = service.logs.history("me", "one", points=MOST_POINTS).result().points
    assert set(shown) <= {(each.observed, each.losses) for each in points}


def test_a_history_of_many_arms_shows_those_that_are_exploited_most(file: str) -> None:
    service = quick_service(file)
    arms = tuple(range(2 * MOST_ARMS))
    service.experiments.put(
        "me", "one", Settings({"name": "FollowTheLeader"}, arms), seed=7
    ).result()
    for _ in range(60):
        [made] = service.decisions.decide("me", "one").result()
        service.decisions.feedback("me", made.id, loss=0.0 if made.explore == 33 else 1.0).result()
    history = service.logs.history("me", "one").result()
    state = service.experiments.state("me", "one").result()
    assert len(history.arms) + history.others == 2 * MOST_ARMS
    assert len(history.arms) <= MOST_ARMS
    assert int(np.argmax(state.plays_exploit)) in history.arms


GATED_MEANS = {"current": 0.5, "next": 0.2, "bad": 0.9}
# What Flagger sends with its hooks.
HOOK = {
    "name": "checkout",
    "namespace": "shop",
    "phase": "WaitingPromotion",
    "checksum": "85d557f47b",
}


def watched(
    seen: dict[str, float],
    rounds: int,
    *,
    incumbent: str | None = None,
    losses: tuple[float, float] = (0.0, 1.0),
) -> WatchedExperiment:
    """An experiment whose arms were explored in turn, with the same loss each time."""
    sequences = Sequences(arms=len(seen))
    law = [1.0 / len(seen)] * len(seen)
    for n in range(rounds * len(seen)):
        place = n % len(seen)
        sequences.update(place, float(len(seen)), list(seen.values())[place], law=law)
    names, scale = tuple(seen), LossRange(*losses)
    return WatchedExperiment("checkout", 7, sequences, names, scale, None, incumbent, None)


COMPARED = [
    ("next", "current", 0.0, "passed", "next is better than current"),
    ("next", "current", 0.1, "passed", "next is not worse than current by more than 0.1"),
    ("next", "current", -0.1, "passed", "next is better than current by more than 0.1"),
    ("next", "current", -0.5, "failed", "next is not better than current by more than 0.5"),
    ("next", None, 0.0, "passed", "next is better than current, bad"),
    ("bad", "current", 0.0, "failed", "bad is worse than current"),
    ("bad", None, 0.2, "failed", "bad is worse than next by more than 0.2"),
    ("bad", "current", 0.6, "passed", "bad is not worse than current by more than 0.6"),
]


@pytest.mark.parametrize(("arm", "against", "margin", "state", "text"), COMPARED)
def test_a_gate_has_a_margin(
    arm: str, against: str | None, margin: float, state: str, text: str
) -> None:
    found = gate_of(watched(GATED_MEANS, 600), arm, against, margin)
    assert (found.state, found.text) == (state, f"{text} (95 %, as of round 1,800)")
    scaled = gate_of(watched(GATED_MEANS, 600, losses=(100.0, 300.0)), arm, against, 200.0 * margin)
    assert scaled.state == state, "the margin is on the scale of the losses"
    assert (found.observed, found.state_version, found.risk) == (1800, 7, 0.05)


def test_until_the_evidence_is_in_it_waits_and_an_incumbent_is_what_it_compares_with() -> None:
    found = gate_of(watched(GATED_MEANS, 5), "next", "current", 0.0)
    assert found.state == "waiting"
    assert found.text.startswith("too early: the difference of next must lie below 0 and is -")
    [only] = found.against
    assert only.difference.low < -0.3 < only.difference.high
    with_one = watched(GATED_MEANS, 600, incumbent="current")
    assert [each.arm for each in gate_of(with_one, "next", None, 0.0).against] == ["current"]
    assert [each.arm for each in gate_of(with_one, "current", None, 0.0).against] == ["next", "bad"]
    fresh = watched(GATED_MEANS, 1)
    for arm, against, wrong in (
        ("nxt", None, "arm = 'nxt'"),
        ("next", "curent", "against = 'curent'"),
    ):
        with pytest.raises(Invalid, match=wrong):
            gate_of(fresh, arm, against, 0.0)
    with pytest.raises(Invalid, match="is the arm at the gate"):
        gate_of(fresh, "next", "next", 0.0)


def test_it_asks_about_now_and_closes_again() -> None:
    found = watched({"current": 0.5, "next": 0.2}, 300)
    assert gate_of(found, "next", None, 0.0).state == "passed"
    later = found.sequences.copy()
    for n in range(2_000):
        later.update(n % 2, 2.0, 1.0 if n % 2 else 0.5, law=[0.5, 0.5])
    assert later.difference(1, 0).high < 0.0, "what a verdict has decided stays so"
    closed = gate_of(replace(found, sequences=later), "next", None, 0.0)
    assert closed.state == "failed"
    at = verdict(later, ["current", "next"]).decided_at
    assert f"the verdict for next, decided at round {at:,}, stays" in closed.text
    assert "verdict" not in gate_of(replace(found, sequences=later), "current", None, 0.0).text


def test_a_gate_is_seldom_wrong_at_any_time() -> None:
    """An arm that is worse by exactly the margin: it may pass in a fifth of 20 runs, at any of 10 looks each.

    More than 9 passes have a probability of 0.003 if that holds (a binomial distribution of 20 and 0.2). A gate that went by
    the estimate alone would let nearly all of them pass.
    """
    passed = 0
    for seed in range(20):
        noise, sequences = np.random.default_rng(seed), Sequences(arms=2, risk=0.2)
        experiment = WatchedExperiment(
            "one", 0, sequences, ("a", "b"), LossRange(0.0, 1.0), None, None, None
        )
        for _ in range(10):
            for arm in noise.integers(2, size=20).tolist():
                loss = float(noise.random() < (0.3, 0.4)[arm])
                sequences.update(arm, 2.0, loss, law=[0.5, 0.5])
            if gate_of(experiment, "b", "a", 0.1).state == "passed":
                passed += 1
                break
    assert passed <= 9


SERVED = {"open_to_all": False}


def prepare(service: Service) -> None:
    service.http.headers.update(service.key("admin"))
    service.create("checkout", arms=list(GATED_MEANS), seed=7)
    for _ in range(3):
        made = service.decide("checkout", count=300)["decisions"]
        items = [{"decision": each["id"], "loss": GATED_MEANS[each["explore"]]} for each in made]
        assert service.http.post("/v1/feedback", json={"items": items}).status_code == 200


def ask(service: Service, method: str = "GET", **query: Any) -> Any:
    body = HOOK if method == "POST" else None
    return service.http.request(method, "/v1/experiments/checkout/gate", params=query, json=body)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_status_says_whether_it_is_open(service: Service, method: str) -> None:
    opened = ask(service, method, arm="next", against="current", margin=0.02)
    assert opened.status_code == 200
    assert opened.json()["open"] is True
    for query in (
        {"arm": "bad"},
        {"arm": "next", "when": "failed"},
        {"arm": "next", "margin": -0.9},
    ):
        refused = ask(service, method, **query)
        assert refused.status_code == 409, query
        assert refused.json()["open"] is False
    rolled_back = ask(service, method, arm="bad", against="current", when="failed")
    assert (rolled_back.status_code, rolled_back.json()["state"]) == (200, "failed")
    for_programs = ask(service, method, arm="bad", closed="200")
    assert (for_programs.status_code, for_programs.json()["state"]) == (200, "failed")
    wrong: Any = (
        {},
        {"arm": "nobody"},
        {"arm": "next", "margin": "nan"},
        {"arm": "next", "when": "waiting"},
    )
    for query in wrong:
        assert ask(service, method, **query).status_code == 422, query


def test_the_command_has_the_status_in_its_exit_status(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(service.key("read")["Authorization"].removeprefix("Bearer "))
    reached = ["--url", service.url, "--key-file", str(file)]
    said = run(
        "client", "gate", "checkout", "next", "--against", "current", "--margin", "0.02", *reached
    )
    assert (said.exit_code, said.stdout) == (
        0,
        "next is not worse than current by more than 0.02 (95 %, as of round 900)\n",
    )
    said = run("client", "gate", "checkout", "bad", "--json", *reached)
    assert said.exit_code == 1
    assert '"state": "failed"' in said.stdout
