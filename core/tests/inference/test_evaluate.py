"""A log judged offline: the estimates by their definitions, every form of a log and of a candidate,
tags, and refusals.
"""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.inference import Evaluated, read_log
from support.seeds import seeded

MEANS = {"a": 0.3, "b": 0.5, "c": 0.7}


def logged(rounds: int, seed: int = 0, policy: dc.Policy | None = None) -> list[dict[str, Any]]:
    """A log as the service exports it, of a learner whose feedback is prompt."""
    rng = np.random.default_rng(seeded(seed))
    learner = (policy or dc.Ladder()).start(list(MEANS), seed=seeded(seed))
    rows: list[dict[str, Any]] = []
    for n in range(rounds):
        decision = learner.decide()
        loss = float(rng.random() < MEANS[str(decision.explore)])
        learner.observe(decision, loss)
        row: dict[str, Any] = {"seq": 2 * n + 1, "available": None, "settled_seq": 2 * n + 2}
        row |= {"exploit": decision.exploit, "explore": decision.explore, "status": "applied"}
        rows.append(row | {"propensity": decision.propensity, "loss": loss})
    return rows


ROWS = logged(2_000)
RESULT = dc.evaluate(ROWS, policy="b")


def value(result: dc.Evaluation, name: str) -> Evaluated:
    return next(each for each in result.values if each.name == name)


def candidate(log: Any, policy: Any, **options: Any) -> Any:
    """The value of a candidate, which there is."""
    return dc.evaluate(log, policy, **options).candidate


def test_estimates_are_those_of_their_definitions_and_intervals_hold_the_truth() -> None:
    """A false alarm in at most one seed of 20: that is the risk of the intervals of a result
    together.
    """
    loss = np.array([row["loss"] for row in ROWS])
    weight = np.array([(row["explore"] == "b") / row["propensity"] for row in ROWS])
    model, total, count = [], 0.5, 1
    for row in ROWS:
        model.append(total / count)
        if row["explore"] == "b":
            total, count = total + row["loss"], count + 1
    found = value(RESULT, "b")
    assert found.importance_weighted == pytest.approx((weight * loss).mean())
    assert found.self_normalised == pytest.approx((weight * loss).sum() / weight.sum())
    assert found.doubly_robust == pytest.approx((model + weight * (loss - model)).mean())
    assert found.telling == np.count_nonzero(weight)
    same = np.array([(row["explore"] == row["exploit"]) / row["propensity"] for row in ROWS])
    assert value(RESULT, "what was served").importance_weighted == pytest.approx(
        (same * loss).mean()
    )
    assert RESULT.candidate is not None
    arm = value(RESULT, "b")
    for name in ("importance_weighted", "self_normalised", "doubly_robust", "low", "high"):
        assert getattr(RESULT.candidate, name) == pytest.approx(getattr(arm, name))
    assert RESULT.candidate.name == "always b"
    for name, mean in MEANS.items():
        assert value(RESULT, name).low <= mean <= value(RESULT, name).high
    apart = RESULT.candidate_minus_served
    assert apart is not None
    assert apart.low < apart.estimate < apart.high
    longer = dc.evaluate(logged(4_000), policy="b").candidate_minus_served
    assert longer is not None
    assert longer.low > 0.0


def test_every_form_of_a_candidate_agrees() -> None:
    shares = {"a": 0.25, "b": 0.75, "c": 0.0}
    rows = np.tile(list(shares.values()), (len(ROWS), 1))
    first, *others = (
        candidate(ROWS, form)
        for form in (shares, rows, lambda row: shares, lambda row: [0.25, 0.75, 0.0])
    )
    for each in others:
        assert (each.doubly_robust, each.low) == pytest.approx((first.doubly_robust, first.low))


def test_a_policy_is_replayed_with_what_it_could_know(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ROWS[:300]
    learner, laws = dc.FTPL().start(list("abc"), seed=0), []
    for row in rows:
        laws.append(learner.exploitation_probabilities())
        learner.replay([(row["explore"], row["propensity"], row["loss"])])
    # Feedback that came after the last decision was known to none.
    late = [{**row, "settled_seq": 10_000 + n} for n, row in enumerate(rows)]
    for log, law in ((rows, np.array(laws)), (late, dict.fromkeys("abc", 1 / 3))):
        found, slow = (candidate(log, policy, arms=list("abc")) for policy in (dc.FTPL(), law))
        assert found.doubly_robust == pytest.approx(slow.doubly_robust)
    exact = candidate(ROWS, dc.FTPL())
    monkeypatch.setattr(
        "decoupled.inference.candidates.MOST_EXACT", 10
    )  # longer logs are replayed by draws
    drawn = candidate(ROWS, dc.FTPL())
    assert drawn.low <= exact.doubly_robust <= drawn.high
    assert abs(drawn.doubly_robust - exact.doubly_robust) < 0.1


def test_every_form_of_a_log_agrees(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.DataFrame(ROWS)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "log.parquet")
    with (tmp_path / "log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(
            {key: "" if each is None else each for key, each in row.items()} for row in ROWS
        )
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    files = (tmp_path / "log.csv", str(tmp_path / "log.parquet"))
    for log in (frame, columns, pa.Table.from_pylist(ROWS), *files):
        assert dc.evaluate(log, policy="b") == RESULT


TELL_NOTHING: list[dict[str, Any]] = [
    {"status": "pending", "loss": None},
    {"status": "expired", "loss": None},
    {"explore": None, "propensity": None, "status": "unobserved", "loss": None},
    {"available": '["a", "b"]'},
    {"propensity": 1.0},
]


@pytest.mark.parametrize(
    ("extra", "left_out", "remark"),
    [
        (TELL_NOTHING, 0, "2 losses wait for that of an earlier decision"),
        (
            [*TELL_NOTHING[1:], TELL_NOTHING[0]],
            2,
            "2 observed decisions could not explore every arm and are left out",
        ),
    ],
    ids=["pending first", "pending last"],
)
def test_rows_that_tell_nothing_are_left_out(
    extra: list[dict[str, Any]], left_out: int, remark: str
) -> None:
    """Two of them have a loss, which waits if the pending one stands before them."""
    extra = [{**ROWS[0], **each, "seq": 10_000 + n} for n, each in enumerate(extra)]
    result = dc.evaluate(ROWS + extra, policy="b")
    assert (result.decisions, result.observed, result.left_out) == (2_005, 2_000, left_out)
    assert [each.importance_weighted for each in result.arms] == [
        each.importance_weighted for each in RESULT.arms
    ]
    assert result.remarks[0] == remark


def test_rows_after_one_that_is_pending_wait() -> None:
    """Whose losses have come by now may depend on the arm. After 1,000 rows it is not waited for
    any longer.
    """
    rows = [
        {**row, "seq": place, "settled_seq": None, "status": "applied"}
        for place, row in enumerate(ROWS)
    ]
    rows[1_500] |= {"status": "pending", "loss": None}
    rows[200] |= {"status": "pending", "loss": None}
    found = dc.evaluate(rows[::-1])  # in any order: `seq` has that of the decisions
    assert (found.observed, found.decisions) == (1_499, 2_000)
    assert "1 decision without a loss is left out, assuming" in found.remarks[-1]
    assert found.remarks[-1].endswith("; 499 losses wait for that of an earlier decision")
    assert dc.evaluate(rows[1_499::-1]).values == found.values
    rows = [{**row, "seq": place, "settled_seq": None} for place, row in enumerate(ROWS[:900])]
    rows[0] |= {"status": "pending", "loss": None}
    with pytest.raises(
        dc.ParameterError, match=r"899 losses, which wait .* the status 'unobserved'"
    ):
        dc.evaluate(rows)
    rows[0] |= {"status": "unobserved"}
    assert dc.evaluate(rows).observed == 899


def as_of(rows: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """The log as it was read when its last row had this number."""
    made = [row for row in rows if row["seq"] <= now]
    unknown = {"status": "pending", "loss": None, "settled_seq": None}
    return [row if row["settled_seq"] <= now else {**row, **unknown} for row in made]


def test_a_log_that_grows_is_a_beginning_of_the_same_rows_at_every_length() -> None:
    """Then each look is at one supermartingale. Before, a loss that came after it was given up went
    among earlier ones.
    """
    luck = np.random.default_rng(4)
    rows = []
    for place, row in enumerate(logged(2_600, seed=3)):
        delay = (
            int(luck.integers(1_000, 4_000)) if luck.random() < 0.01 else int(luck.integers(0, 60))
        )
        rows.append({**row, "seq": 2 * place + 1, "settled_seq": 2 * (place + delay) + 2})
    how: Any = {"arms": list("abc"), "coupled": False, "least_propensity": 1e-4}
    looks = [*range(2_001, 5_200, 400), 15_000]
    last = read_log(as_of(rows, looks[-1]), (0.0, 1.0), list("abc"))
    assert 0 < last.missing < 30, "some losses came too late for good"
    lengths = []
    for now in looks:
        log = as_of(rows, now)
        read = read_log(log, (0.0, 1.0), list("abc"))
        count = len(read)
        for name in ("rows", "explore", "exploit", "propensity", "loss", "made_at", "settled_at"):
            assert np.array_equal(getattr(read, name), getattr(last, name)[:count]), name
        seen = [rows[place] for place in last.rows[:count].tolist()]
        for policy in ("b", dc.FTPL()):
            assert dc.evaluate(log, policy, **how).values == dc.evaluate(seen, policy, **how).values
        lengths.append(count)
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 4


def test_a_loss_that_was_declared_for_what_expires_counts() -> None:
    # Arm "a" is the best of those that answer, and half of its decisions expire, at a loss of 1. A
    # false alarm in at most one seed of 20.
    rng = np.random.default_rng(seeded(1))
    rows = [
        {**row, "status": "expired", "loss": 1.0}
        if row["explore"] == "a" and rng.random() < 0.5
        else row
        for row in ROWS
    ]
    found, plain = dc.evaluate(rows), dc.evaluate([{**row, "status": "applied"} for row in rows])
    assert found == plain
    a, b = value(found, "a"), value(found, "b")
    assert a.low <= 0.65 <= a.high
    assert (a.doubly_robust or 0.0) > (b.doubly_robust or 1.0)


def test_a_decision_that_is_there_twice_is_refused() -> None:
    for name in ("id", "seq"):
        rows = [{**row, name: f"t-{n}"} if name == "id" else row for n, row in enumerate(ROWS[:50])]
        with pytest.raises(
            dc.ParameterError, match=rf"log\[50\].{name} = .* decision of log\[7\] too"
        ):
            dc.evaluate([*rows, rows[7]])
    twins = [{**row, "id": f"{tag}-{n}"} for tag in "xy" for n, row in enumerate(ROWS[:50])]
    assert dc.evaluate(twins).decisions == 100  # other ids, such as those of another experiment


def test_an_interval_that_is_empty_says_so(tmp_path: Path) -> None:
    # Losses of 0 and of 1 with weights that cannot both be right: no mean loss agrees with 1,000 of
    # each.
    rows = [
        {"explore": "a", "exploit": "a", "propensity": 0.2, "loss": n % 2} for n in range(2_000)
    ]
    found = dc.evaluate(rows, policy="a", arms=["a", "b"])
    a = value(found, "a")
    assert a.empty
    assert a.low > a.high
    assert "empty" in str(found).splitlines()[1]
    assert any(
        "the interval of a is empty: no value agrees with the log" in each for each in found.remarks
    )
    found.plot(tmp_path / "values.png")
    assert not any(each.empty for each in RESULT.values)
    assert not any("empty" in each for each in RESULT.remarks)


def test_losses_are_shown_in_their_range_and_the_standard_game_has_what_was_served() -> None:
    wide = [{**row, "loss": 100 + 200 * row["loss"]} for row in ROWS]
    found = dc.evaluate(wide, policy="b", loss_range=(100, 300))
    assert value(found, "b").low == pytest.approx(100 + 200 * value(RESULT, "b").low)
    assert found.candidate_minus_served is not None
    assert RESULT.candidate_minus_served is not None
    assert found.candidate_minus_served.low == pytest.approx(
        200 * RESULT.candidate_minus_served.low
    )
    rows = logged(400, policy=dc.CoupledExp3())
    found = dc.evaluate(rows)
    assert found.served is not None
    assert found.served.doubly_robust == pytest.approx(np.mean([row["loss"] for row in rows]))
    assert found.served.telling == 400


def test_without_drift_intervals_are_narrower_and_need_no_propensities() -> None:
    # The arm that is explored least has 0.64 of the width, with a standard error of 0.05 over
    # seeds. The one that is explored most may have a wider interval, in one seed of 16.
    narrow = dc.evaluate(ROWS, policy="b", drift=False)
    widths = [[each.high - each.low for each in result.arms] for result in (narrow, RESULT)]
    assert widths[0][2] < widths[1][2]
    assert sum(widths[0]) < sum(widths[1])
    blind = dc.evaluate([{**row, "propensity": None} for row in ROWS], drift=False)
    for one, two in zip(blind.arms, dc.evaluate(ROWS, drift=False).arms, strict=True):
        assert one.low == pytest.approx(two.low)
        assert one.doubly_robust is None
    missing = [{**row, "loss": None} if place == 3 else row for place, row in enumerate(ROWS[:200])]
    assert dc.evaluate(pd.DataFrame(missing).convert_dtypes()).observed == 199


def test_arms_that_came_later_or_were_never_explored_are_remarked() -> None:
    rows = [{"explore": "ab"[n % 2], "propensity": 0.5, "loss": 0.5} for n in range(1_000)]
    rows += [{"explore": "abc"[n % 3], "propensity": 1 / 3, "loss": 0.5} for n in range(999)]
    assert any(
        "the weights of 'c' average 0.50 instead of 1" in each for each in dc.evaluate(rows).remarks
    )
    assert not any("average" in each for each in RESULT.remarks)
    found = dc.evaluate(ROWS, arms=["a", "b", "c", "d"])
    assert value(found, "d") == Evaluated("d", 0, None, None, None, 0.0, 1.0)
    assert found.remarks == ("'d' was never explored, so nothing can be told about it",)


def with_laws(rounds: int, *, coupled: bool = False) -> list[dict[str, Any]]:
    """A log with laws; losses hardly differ."""
    rng = np.random.default_rng(seeded(5))
    rows = []
    for _ in range(rounds):
        law = 0.1 + 0.7 * rng.dirichlet(np.ones(3))
        explore, exploit = (str(each) for each in rng.choice(list("abc"), size=2, p=law))
        loss = float(np.clip(rng.normal(MEANS[explore], 0.03), 0.0, 1.0))
        known = dict(zip("abc", law.tolist(), strict=True))
        row = {"explore": explore, "exploit": explore if coupled else exploit, "loss": loss}
        rows.append(row | {"propensity": known[explore], "law": known})
    return rows


def without_law(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "law"} for row in log]


@pytest.mark.parametrize("coupled", [False, True])
def test_laws_make_intervals_narrow_and_change_no_estimate(coupled: bool) -> None:
    """The truth is in all of them but in one seed of 20; most are a tenth as wide."""
    rows = with_laws(2_000, coupled=coupled)
    found, blind = (dc.evaluate(log, {"a": 0.5, "c": 0.5}) for log in (rows, without_law(rows)))
    served = float(np.mean([MEANS[row["exploit"]] for row in rows]))
    truths = [*MEANS.values(), served, 0.5]
    for one, other, truth in zip(found.values, blind.values, truths, strict=True):
        assert one.doubly_robust == other.doubly_robust
        assert one.low <= truth <= one.high
        if not (coupled and one.name == "what was served"):  # which is seen
            assert one.high - one.low < 0.3 * (other.high - other.low)
    apart, wide = found.candidate_minus_served, blind.candidate_minus_served
    assert apart is not None
    assert wide is not None
    assert apart.low <= 0.5 - served <= apart.high
    assert apart.high - apart.low < 0.5 * (wide.high - wide.low)


def test_laws_may_be_text_or_missing_in_some_rows_and_say_who_had_no_chance() -> None:
    rows = with_laws(600)
    text = [{**row, "law": json.dumps(row["law"])} for row in rows]
    assert dc.evaluate(text, "b") == dc.evaluate(rows, "b")
    some = [row if n % 2 else {**row, "law": None} for n, row in enumerate(rows)]
    widths = []
    for log in (rows, some, without_law(rows)):
        found = candidate(log, "b")
        widths.append(found.high - found.low)
    assert 1.5 * widths[0] < widths[1] < widths[2]
    never = {"explore": "a", "propensity": 0.5, "loss": 0.9, "law": {"a": 0.5, "b": 0.5, "c": 0.0}}
    found = dc.evaluate([*rows, never], "b")
    assert (found.left_out, found.arms) == (1, dc.evaluate(rows, "b").arms)


LEVELS = {"a": 0.2, "b": 0.7}


def predicted_rows(
    count: int, seed: int, noise: float = 0.05, wrong: float = 0.0
) -> list[dict[str, Any]]:
    """A log whose situations differ a lot; its predictions know them, up to an error."""
    stream = np.random.default_rng(seeded(seed))
    found = []
    for _ in range(count):
        hard = stream.random() * 0.25
        arm = "a" if stream.random() < 0.5 else "b"
        expected = {name: mean + hard for name, mean in LEVELS.items()}
        loss = min(max(expected[arm] + noise * stream.standard_normal(), 0.0), 1.0)
        predicted = {name: value + wrong for name, value in expected.items()}
        found.append(
            {"explore": arm, "propensity": 0.5, "loss": loss, "baseline": json.dumps(predicted)}
        )
    return found


def robust(log: list[dict[str, Any]]) -> list[float]:
    return [float(each.doubly_robust or 0.0) for each in dc.evaluate(log).arms]


def expected_in(log: list[dict[str, Any]]) -> Floats:
    """The mean of what was predicted for each arm."""
    found: Floats = np.array([[*json.loads(row["baseline"]).values()] for row in log]).mean(axis=0)
    return found


def without(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "baseline"} for row in log]


def test_predictions_make_the_estimate_less_noisy_and_never_biased() -> None:
    """60 logs of 200 rows, each against the mean of what it expected. A false alarm in at most 1 of
    10,000 seeds.

    Means are compared at five standard errors. Predictions that are off leave 0.59 and 0.52 of the
    noise, and over seeds these shares have standard errors of 0.08 and 0.07.
    """
    for wrong in (0.0, 0.04):
        logs = [predicted_rows(200, seed, 0.02, wrong) for seed in range(60)]
        truth = np.array([expected_in(log) for log in logs]) - wrong
        known = np.array([robust(log) for log in logs]) - truth
        plain = np.array([robust(without(log)) for log in logs]) - truth
        off = np.abs(known.mean(axis=0))
        assert np.all(off < 5 * known.std(axis=0) / np.sqrt(60) + 1e-3), (
            "unbiased if predictions are off"
        )
        assert np.all(known.std(axis=0) < 0.9 * plain.std(axis=0)), "less noisy"


def test_a_perfect_prediction_leaves_no_noise_and_a_missing_one_changes_nothing() -> None:
    log = [
        {"explore": arm, "propensity": p, "loss": LEVELS[arm], "baseline": LEVELS}
        for arm, p in [("a", 0.9), ("b", 0.1), ("a", 0.5), ("a", 0.9)]
    ]
    assert robust(log) == pytest.approx([0.2, 0.7], abs=1e-12)
    intervals = [(each.low, each.high) for each in dc.evaluate(log).arms]
    assert intervals == [(each.low, each.high) for each in dc.evaluate(without(log)).arms]
    log = predicted_rows(50, 1)
    partly = [
        {**row, "baseline": {"a": 0.5, "gone": 0.9} if n % 2 else ""} for n, row in enumerate(log)
    ]
    only_b = dc.evaluate(partly).arms[1]
    assert only_b == dc.evaluate(without(log)).arms[1], "no prediction for b: as without"


def test_tags_choose_rows_and_keep_all_arms() -> None:
    log = [
        {
            **row,
            "tags": json.dumps(
                {"country": "de" if row["explore"] == "a" else "fr", "n": str(n % 3)}
            ),
        }
        for n, row in enumerate(predicted_rows(60, 2))
    ]
    german = dc.evaluate(log, tags={"country": "de"})
    assert german.decisions == sum(row["explore"] == "a" for row in log)
    assert [(each.name, each.telling) for each in german.arms] == [
        ("a", german.decisions),
        ("b", 0),
    ]
    both = dc.evaluate(log, tags={"country": "de", "n": "0"})
    assert both.decisions == sum('"de"' in row["tags"] and '"n": "0"' in row["tags"] for row in log)
    laws = np.tile([1.0, 0.0], (60, 1))
    assert dc.evaluate(log, laws, tags={"country": "de"}).candidate is not None, (
        "a law for each row"
    )
    with pytest.raises(dc.ParameterError, match="0 decisions and no loss"):
        dc.evaluate(log, tags={"country": "it"})
    with pytest.raises(dc.ParameterError, match="tags = 'de'"):
        dc.evaluate(log, tags="de")  # type: ignore[arg-type]


# What is refused: changes of every row, further arguments, and the message

KINDS = {"law": "a", "art": "b"}
IN_CONTEXT = [
    {**row, "context": {"kind": ("law", "art")[n % 2]}} for n, row in enumerate(ROWS[:50])
]
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"propensity": None}, {}, "2000 of 2000 observed decisions have no propensity"),
    ({"propensity": 1.0}, {}, "none of the 2000 decisions with a loss could explore every arm"),
    (
        {"propensity": 0.0},
        {},
        r"log\[0\].propensity = 0.0: must be a probability of at least 1e-50",
    ),
    (
        {"propensity": 1e-320},
        {},
        r"log\[0\].propensity = 1e-320: must be a probability of at least 1e-50",
    ),
    ({"propensity": "high"}, {}, r"log\[0\].propensity = 'high': is not a number"),
    ({"loss": None}, {}, "has 2000 decisions and no loss"),
    ({"loss": 1.5}, {}, r"log\[0\].loss = 1.5: must lie in \[0.0, 1.0\]"),
    ({"id": None, "seq": 7}, {}, r"log\[1\].seq = 7: is the decision of log\[0\] too"),
    ({"id": [1]}, {}, r"log\[0\].id ="),
    ({"explore": ["a"]}, {}, r"log\[0\].explore ="),
    ({"baseline": "[1]"}, {}, r"log\[0\].baseline = '\[1\]': is not a JSON object"),
    ({"baseline": {"a": 1.5}}, {}, r"log\[0\].baseline\['a'\] = 1.5"),
    ({"baseline": {"a": "low"}}, {}, r"log\[0\].baseline\['a'\] = 'low'"),
    ({"law": "[1]"}, {}, r"log\[0\].law = '\[1\]': is not a JSON object"),
    ({"law": {"a": 1.5}}, {}, r"log\[0\].law\['a'\] = 1.5: must be a probability"),
    ({"law": {"e": 1.0}}, {}, r"log\[0\].law\['e'\] = 1.0: is of an arm that the log has nowhere"),
    ({"law": {"a": 0.5, "b": 0.2}}, {}, r"log\[0\].law = 0.7: must be probabilities that add up"),
    (
        {"propensity": 0.3, "law": dict.fromkeys("abcd", 0.25)},
        {},
        r"log\[0\].law = 0.25: must have the propensity of the explored arm",
    ),
    ({"tags": "de"}, {"tags": {"country": "de"}}, r"log\[0\].tags = 'de'"),
    ({}, {"loss_range": (1, 0)}, "loss_range"),
    ({}, {"loss_range": (-1e308, 1e308)}, "loss_range"),
    ({}, {"policy": "d"}, "policy: would exploit 'd', which the log never explored"),
    ({}, {"policy": {"a": 0.5, "d": 0.5}}, "would exploit 'd'"),
    ({}, {"policy": "e"}, "is not an arm of this log"),
    ({}, {"policy": {"a": 0.5}}, "add up to 1"),
    ({}, {"policy": {"a": 2.0}}, r"policy\['a'\] = 2.0: must be a number from 0 to 1"),
    ({}, {"policy": np.ones((3, 4))}, "must have a row for each of 2000 decisions"),
    ({}, {"policy": lambda row: [0.5, 0.5, 0.5, 0.5]}, "add up to 1"),
    ({}, {"policy": lambda row: [10**400, 0, 0, 0]}, r"policy\(...\)"),
    ({}, {"policy": object()}, "is none that can be judged"),
    (
        {"context": None},
        {"policy": KINDS, "segments": "kind"},
        "need a context, and the log has none",
    ),
]
REFUSED_IN_CONTEXT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"context": "law"}, {}, r"log\[0\].context = 'law': is not a JSON object"),
    ({"context": "[" * 100_000}, {}, r"log\[0\].context ="),
    *(
        (
            {"context": {"kind": value}},
            {},
            rf"log\[0\].context\['kind'\] = {shown}.*: must be a text, a number from",
        )
        for value, shown in (
            (math.nan, "nan"),
            (["law"], r"\['law'"),
            (10**400, "1000"),
            (-1e101, r"-1e\+101"),
        )
    ),
    (
        {},
        {"drift": False},
        "assumes that an arm has one mean for all decisions, and these have contexts",
    ),
    ({}, {"least_propensity": 0.9}, "least_propensity = 0.9: must be at most 0."),
    ({}, {"least_propensity": 0.0}, "least_propensity"),
    (
        {},
        {"policy": {"law": "a"}, "segments": "kind"},
        "is a segment of the log that the mapping lacks",
    ),
    ({}, {"policy": KINDS | {"law": "e"}, "segments": "kind"}, "is not an arm of this log"),
    (
        {},
        {"policy": lambda _: "a", "segments": "kind"},
        "must be a mapping from the values of the fields",
    ),
    ({}, {"policy": KINDS, "segments": ()}, r"segments = \(\): must be names of fields"),
    ({}, {"policy": lambda context: "e"}, "is not an arm of this log"),
    (
        {},
        {"policy": lambda context: None},
        r"policy\(...\) = None: is no arm, and no 4 probabilities, for",
    ),
    ({}, {"policy": lambda context: [0.5, "x"]}, r"policy\(...\) = \[0.5, 'x'\]: is no arm"),
    ({}, {"policy": lambda context: 0.5}, r"policy\(...\) = 0.5: is no arm"),
]


@pytest.mark.parametrize(
    ("rows", "changes", "options", "message"),
    [
        (rows, *each)
        for rows, some in ((ROWS, REFUSED), (IN_CONTEXT, REFUSED_IN_CONTEXT))
        for each in some
    ],
    ids=lambda part: part[:60] if isinstance(part, str) else "",
)
def test_what_cannot_be_told_is_refused(
    rows: list[dict[str, Any]], changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(dc.DecoupledError, match=message):
        dc.evaluate([{**row, **changes} for row in rows], arms=["a", "b", "c", "d"], **options)


GOOD = b"explore,propensity,loss\n" + b"a,0.5,0.2\nb,0.5,0.7\n" * 5
UNREADABLE: list[tuple[str, Any, str]] = [
    *(
        ("log.csv", GOOD + more, f"log.csv': .*{message}.*save it as CSV in UTF-8")
        for more, message in (
            (b"a,0.5\n", "line 12 has 2 values, and the header 3"),
            (b"a,0.5,0.2,\n", "line 12 has 4 values, and the header 3"),
            ("Köln,0.5,0.2\n".encode("latin-1"), "is not UTF-8"),
            (b'"' + b"x" * 200_000 + b'",0.5,0.2\n', "is not CSV"),
        )
    ),
    *(
        ("log.parquet", content, "log.parquet': is not a whole Parquet file")
        for content in (b"", b"PAR1", b"explore,propensity,loss")
    ),
    ("log.csv", b"", "has no column 'explore'"),
    ("log.json", b"", "must end in .csv or .parquet"),
    (
        "",
        {"explore": ["a", "b"], "propensity": [0.5], "loss": [0.1, 0.2]},
        r"log\['propensity'\]: has 1 values",
    ),
    ("", {"explore": ["a"], "loss": [0.5]}, "has no column 'propensity', only 'explore', 'loss'"),
    ("", 7, "is an int"),
    ("", [1, 2], r"log\[0\] = 1: is an int, and rows must be mappings"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"), UNREADABLE, ids=lambda part: repr(part)[:40]
)
def test_an_unreadable_log_says_where(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    if name:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(dc.ParameterError, match=message):
        dc.evaluate(tmp_path / name if name else content)


def test_files_may_have_marks_blank_lines_and_other_ends_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(GOOD)
    plain = dc.evaluate(path)
    for same in (b"\xef\xbb\xbf" + GOOD, GOOD + b"\n\n", GOOD.replace(b"\n", b"\r\n")):
        path.write_bytes(same)
        assert dc.evaluate(path) == plain
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(FileNotFoundError):
            dc.evaluate(tmp_path / name)
