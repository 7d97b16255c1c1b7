"""Waits for a verdict, and formats it for a terminal."""

import time
from typing import TYPE_CHECKING, Any

import typer

from .shared import aligned

if TYPE_CHECKING:
    from ..client.sync import Client

LOOK_EVERY = 5.0  # seconds


def wait_for_decision(service: "Client", name: str) -> dict[str, Any]:
    """The verdict of an experiment once it is decided.

    What it says until then goes to the standard error.
    """
    last_text = None
    while True:
        verdict = service.verdict(name)
        if verdict["state"] == "decided":
            return verdict
        if verdict["text"] != last_text:
            last_text = verdict["text"]
            typer.echo(last_text, err=True)
        time.sleep(LOOK_EVERY)


def verdict_text(verdict: dict[str, Any]) -> str:
    """The sentence, a line for each arm, and the regret in words.

    >>> interval = {"estimate": 0.31, "low": 0.25, "high": 0.38}
    >>> verdict = dict.fromkeys(("since", "regret", "regret_against", "sure", "decided_at"))
    >>> verdict |= {
    ...     "text": "too early: about 400 more observations at this rate",
    ...     "risk": 0.05,
    ...     "drift": True,
    ...     "arms": [{"arm": "small", "observed": 120, "loss": interval}],
    ...     "incumbent": "small",
    ...     "incumbent_released": False,
    ...     "remark": "3 losses wait for that of an earlier decision",
    ... }
    >>> print(verdict_text(verdict))
    too early: about 400 more observations at this rate
    3 losses wait for that of an earlier decision
    small is used until another arm is known to be better.
    <BLANKLINE>
    arm    mean loss  from  to    observed
    small  0.31       0.25  0.38  120
    <BLANKLINE>
    All of this holds at every moment at once, with a probability of 95 %.
    What is decided holds as of its round: losses may have drifted since.
    """
    lines = [verdict["text"]]
    if verdict["decided_at"] is not None:
        lines.append(_evidence_now(verdict))
    if verdict.get("warning"):
        lines.append(f"Warning: {verdict['warning']}.")
    elif verdict.get("judge"):
        lines.append(f"The judge alone would say: {verdict['judge']}.")
    if verdict["remark"] is not None and verdict["remark"] not in verdict["text"]:
        lines.append(verdict["remark"])
    if verdict["incumbent"] is not None:
        standing = "is used until another arm is known"
        if verdict["incumbent_released"]:
            standing = "was the incumbent; another arm was found"
        lines.append(f"{verdict['incumbent']} {standing} to be better.")
    lines += ["", _arms(verdict["arms"]), ""]
    if _overlap(verdict):
        lines.append("Intervals of means overlap, although arms are out: " + OVERLAP)
    if verdict["regret"] is not None:
        lines.append(_regret(verdict["regret"], verdict["regret_against"]))
    if verdict.get("judge_report"):
        lines += [*_judge(verdict["judge_report"]), ""]
    return "\n".join(lines + _validity(verdict))


# A verdict bets on the difference of two arms, over the rounds that could explore both.
OVERLAP = (
    "arms are compared by their difference, which takes less evidence than two separate means."
)


def _evidence_now(verdict: dict[str, Any]) -> str:
    """How far the evidence now bears out what was decided.

    If it no longer does, a gate can say something else.
    """
    round_ = f"Decided at round {verdict['decided_at']:,}"
    level = f"{100.0 * min(verdict['sure'], 0.9999):.4g} %"
    sentence = f"{round_}; the evidence now shows the same at a level of {level}"
    if verdict["sure"] >= 1.0 - verdict["risk"]:
        return f"{sentence}."
    return f"{sentence} only. A verdict stays; a gate goes by the evidence now, so it may not pass."


def _overlap(verdict: dict[str, Any]) -> bool:
    """Whether the interval of an arm that is out overlaps that of the best one."""
    losses = {arm["arm"]: arm["loss"] for arm in verdict["arms"] if arm["observed"]}
    best = losses.get(verdict.get("best"))
    out = [losses[arm] for arm in verdict.get("out", ()) if arm in losses]
    return best is not None and any(loss["low"] <= best["high"] for loss in out)


def _validity(verdict: dict[str, Any]) -> list[str]:
    """What all the numbers hold for, and with which probability."""
    level = f"{100.0 * (1.0 - verdict['risk']):.6g} %"
    lines = [f"All of this holds at every moment at once, with a probability of {level}."]
    if verdict["drift"]:
        lines.append("What is decided holds as of its round: losses may have drifted since.")
    if verdict["since"] is not None:
        lines.append(f"It counts what was observed since {verdict['since']}.")
    return lines


def segments_text(verdict: dict[str, Any]) -> str:
    """The sentence, and a line for each segment.

    >>> law = {
    ...     "segment": {"subject": "law"},
    ...     "decisions": 120,
    ...     "observed": 100,
    ...     "text": "large is better than small (95 %)",
    ... }
    >>> print(segments_text({
    ...     "by": ["subject"],
    ...     "text": "large is best for law",
    ...     "risk": 0.05,
    ...     "drift": True,
    ...     "since": None,
    ...     "others": 2,
    ...     "segments": [law],
    ... }))
    large is best for law
    <BLANKLINE>
    subject  decisions  observed  verdict
    law      120        100       large is better than small (95 %)
    <BLANKLINE>
    2 more segments are not listed.
    All of this holds at every moment at once, with a probability of 95 %.
    What is decided holds as of its round: losses may have drifted since.
    """
    fields = verdict["by"]
    rows = [(*fields, "decisions", "observed", "verdict")]
    for segment in verdict["segments"]:
        values = segment["segment"] or dict.fromkeys(fields, "(all others)")
        texts = [_value(values[name]) for name in fields]
        counts = [f"{segment['decisions']:,}", f"{segment['observed']:,}"]
        rows.append((*texts, *counts, segment["text"]))
    lines = [verdict["text"], "", aligned(rows), ""]
    if verdict["others"]:
        lines.append(f"{verdict['others']:,} more segments are not listed.")
    return "\n".join(lines + _validity(verdict))


def _value(value: object) -> str:
    """The value of a field of the context."""
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _arms(arms: list[dict[str, Any]]) -> str:
    """A line for each arm."""
    rows: list[tuple[str, ...]] = [("arm", "mean loss", "from", "to", "observed")]
    for arm in arms:
        ends = ["-", "-", "-"]
        if arm["observed"] > 0:
            ends = _ends(arm["loss"])
        rows.append((str(arm["arm"]), *ends, f"{arm['observed']:,}"))
    return aligned(rows)


def _ends(interval: dict[str, float]) -> list[str]:
    """An estimate and the ends of its interval as texts."""
    return [_number(interval[end]) for end in ("estimate", "low", "high")]


def _judge(report: dict[str, Any]) -> list[str]:
    r"""A line for each thing that labels say of the judge.

    >>> even = {"estimate": 0.0, "low": -0.1, "high": 0.1}
    >>> print(*_judge({
    ...     "agreement": {"estimate": 0.9, "low": 0.8, "high": 1.0},
    ...     "bias": {"small": even},
    ...     "position_bias": None,
    ...     "labels": 200,
    ...     "missing": 2,
    ...     "awaiting": 5,
    ...     "lam": 0.75,
    ... }), sep="\n")
    200 labels, 2 missing, 5 awaited; the judge counts 0.75.
    agreement           0.9  from 0.8 to 1
    judged minus small  0    from -0.1 to 0.1
    """
    intervals = {"agreement": report["agreement"]}
    for arm, bias in report["bias"].items():
        intervals[f"judged minus {arm}"] = bias
    if report["position_bias"] is not None:
        intervals["for what it saw first"] = report["position_bias"]
    counts = f"{report['labels']:,} labels, {report['missing']:,} missing"
    counts += f", {report['awaiting']:,} awaited"
    rows = []
    for name, interval in intervals.items():
        estimate, low, high = _ends(interval)
        rows.append((name, estimate, f"from {low} to {high}"))
    return [f"{counts}; the judge counts {_number(report['lam'])}.", aligned(rows)]


def _regret(regret: dict[str, float], arm: object) -> str:
    low, high = (_more_or_less(regret[end]) for end in ("low", "high"))
    cost = (
        f"what was exploited cost {_more_or_less(regret['estimate'])} in all (from {low} to {high})"
    )
    return f"Compared with always using {arm}, {cost}."


def _more_or_less(value: float) -> str:
    return f"{_number(abs(value))} {'less' if value < 0.0 else 'more'}"


def _number(value: float) -> str:
    return f"{value:,.4g}"
