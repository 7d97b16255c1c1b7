"""Formats a verdict for a terminal."""

import time
from typing import TYPE_CHECKING, Any

import typer

from .shared import aligned

if TYPE_CHECKING:
    from ..client.sync import Client

LOOK_EVERY = 5.0  # seconds


def decided(service: "Client", name: str) -> dict[str, Any]:
    """The verdict of an experiment once it is decided. What it says until then goes to the standard
    error.
    """
    said = None
    while (found := service.verdict(name))["state"] != "decided":
        if found["text"] != said:
            said = found["text"]
            typer.echo(said, err=True)
        time.sleep(LOOK_EVERY)
    return found


def verdict_text(found: dict[str, Any]) -> str:
    """The sentence, a line for each arm, and the regret in words.

    >>> interval = {"estimate": 0.31, "low": 0.25, "high": 0.38}
    >>> print(verdict_text({
    ...     "text": "too early: about 400 more observations at this rate", "risk": 0.05, "drift": True, "since": None,
    ...     "arms": [{"arm": "small", "observed": 120, "loss": interval}], "regret": None, "regret_against": None,
    ...     "incumbent": "small", "incumbent_released": False, "sure": None, "decided_at": None,
    ...     "remark": "3 losses wait for that of an earlier decision",
    ... }))
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
    lines = [found["text"]]
    if found["decided_at"] is not None:
        lines.append(_now(found))
    if found.get("warning"):
        lines.append(f"Warning: {found['warning']}.")
    elif found.get("judge"):
        lines.append(f"The judge alone would say: {found['judge']}.")
    if found["remark"] is not None:
        lines.append(found["remark"])
    if found["incumbent"] is not None:
        left, kept = (
            "was the incumbent; another arm was found",
            "is used until another arm is known",
        )
        lines.append(
            f"{found['incumbent']} {left if found['incumbent_released'] else kept} to be better."
        )
    lines += ["", _arms(found["arms"]), ""]
    if _overlap(found):
        lines.append("Intervals of means overlap, although arms are out: " + OVERLAP)
    if found["regret"] is not None:
        lines.append(_regret(found["regret"], found["regret_against"]))
    if found.get("judge_report"):
        lines += [*_judge(found["judge_report"]), ""]
    return "\n".join(lines + _validity(found))


# A verdict bets on the difference of two arms, over the rounds that could explore both.
OVERLAP = (
    "arms are compared by their difference, which takes less evidence than two separate means."
)


def _now(found: dict[str, Any]) -> str:
    """How far the evidence now bears out what was decided, and whether a gate can therefore say
    something else.
    """
    level = (
        f"Decided at round {found['decided_at']:,}; the evidence now shows the same at a level of "
    )
    level += f"{100.0 * min(found['sure'], 0.9999):.4g} %"
    if found["sure"] >= 1.0 - found["risk"]:
        return f"{level}."
    return f"{level} only. A verdict stays; a gate goes by the evidence now, so it may not pass."


def _overlap(found: dict[str, Any]) -> bool:
    """Whether the interval of an arm that is out overlaps that of the best one."""
    losses = {each["arm"]: each["loss"] for each in found["arms"] if each["observed"]}
    best = losses.get(found.get("best"))
    out = [losses[arm] for arm in found.get("out", ()) if arm in losses]
    return best is not None and any(each["low"] <= best["high"] for each in out)


def _validity(found: dict[str, Any]) -> list[str]:
    level = f"{100.0 * (1.0 - found['risk']):.6g} %"
    lines = [f"All of this holds at every moment at once, with a probability of {level}."]
    if found["drift"]:
        lines.append("What is decided holds as of its round: losses may have drifted since.")
    if found["since"] is not None:
        lines.append(f"It counts what was observed since {found['since']}.")
    return lines


def segments_text(found: dict[str, Any]) -> str:
    """The sentence, and a line for each segment.

    >>> law = {"segment": {"subject": "law"}, "decisions": 120, "observed": 100, "text": "large is better than small (95 %)"}
    >>> print(segments_text({
    ...     "by": ["subject"], "text": "large is best for law", "risk": 0.05, "drift": True, "since": None, "others": 2,
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
    by, rows = found["by"], [(*found["by"], "decisions", "observed", "verdict")]
    for each in found["segments"]:
        values = each["segment"] or dict.fromkeys(by, "(all others)")
        named = (_value(values[name]) for name in by)
        rows.append((*named, f"{each['decisions']:,}", f"{each['observed']:,}", each["text"]))
    lines = [found["text"], "", aligned(rows), ""]
    if found["others"]:
        lines.append(f"{found['others']:,} more segments are not listed.")
    return "\n".join(lines + _validity(found))


def _value(value: object) -> str:
    return (
        "(none)" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _arms(arms: list[dict[str, Any]]) -> str:
    rows: list[tuple[str, ...]] = [("arm", "mean loss", "from", "to", "observed")]
    for each in arms:
        seen = each["observed"] > 0
        ends = (_number(each["loss"][end]) if seen else "-" for end in ("estimate", "low", "high"))
        rows.append((str(each["arm"]), *ends, f"{each['observed']:,}"))
    return aligned(rows)


def _judge(report: dict[str, Any]) -> list[str]:
    r"""A line for each thing that labels say of the judge.

    >>> even = {"estimate": 0.0, "low": -0.1, "high": 0.1}
    >>> print(*_judge({
    ...     "agreement": {"estimate": 0.9, "low": 0.8, "high": 1.0}, "bias": {"small": even}, "position_bias": None,
    ...     "labels": 200, "missing": 2, "awaiting": 5, "lam": 0.75,
    ... }), sep="\n")
    200 labels, 2 missing, 5 awaited; the judge counts 0.75.
    agreement           0.9  from 0.8 to 1
    judged minus small  0    from -0.1 to 0.1
    """
    rows = [("agreement", report["agreement"])]
    rows += [(f"judged minus {arm}", each) for arm, each in report["bias"].items()]
    if report["position_bias"] is not None:
        rows.append(("for what it saw first", report["position_bias"]))
    counts = f"{report['labels']:,} labels, {report['missing']:,} missing, {report['awaiting']:,} awaited"
    ends = [
        (name, *(_number(each[end]) for end in ("estimate", "low", "high"))) for name, each in rows
    ]
    shown = aligned(
        [(name, estimate, f"from {low} to {high}") for name, estimate, low, high in ends]
    )
    return [f"{counts}; the judge counts {_number(report['lam'])}.", shown]


def _regret(regret: dict[str, float], arm: object) -> str:
    low, high = (_more(regret[end]) for end in ("low", "high"))
    cost = f"what was exploited cost {_more(regret['estimate'])} in all (from {low} to {high})"
    return f"Compared with always using {arm}, {cost}."


def _more(value: float) -> str:
    return f"{_number(abs(value))} {'less' if value < 0.0 else 'more'}"


def _number(value: float) -> str:
    return f"{value:,.4g}"
