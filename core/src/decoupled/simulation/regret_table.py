"""The final regret of policies as rows of text, for the terminal and for reports."""

from collections.abc import Iterator, Mapping, Sequence

from .results import Results

REGRET_HEAD = ("policy", "mean regret", "95 % interval", "median", "99th percentile")
SEGMENT_HEAD = ("gain", "regret against segments")


def regret_rows(
    results: Results, names: Sequence[str], rival: str | None = None, *, segments: bool, paired: bool
) -> Iterator[tuple[str, ...]]:
    """A row for each policy: mean with interval, median and 99th percentile.

    With `segments` there are two more columns: the gain over the best single arm and the regret against segments. With
    `paired` there are two with the difference from the rival, the label of one of the policies, run by run.
    """
    for name, (label, line) in zip(names, results.statistics(rival).items(), strict=True):
        mean, median, p99 = (f"{line[key]:,.1f}" for key in ("mean", "median", "p99"))
        row: tuple[str, ...] = (name, mean, _ends(line, "low", "high"), median, p99)
        if segments:
            row += (f"{line['gain']:+,.1f}", f"{line['segment_regret']:,.1f}")
        if paired:
            row += ("", "") if rival in (None, label) else _difference(line)
        yield row


def _ends(line: Mapping[str, float], low: str, high: str) -> str:
    return f"{line[low]:,.1f} to {line[high]:,.1f}"


def _difference(line: Mapping[str, float]) -> tuple[str, str]:
    return f"{line['difference']:+,.1f}", _ends(line, "difference_low", "difference_high")
