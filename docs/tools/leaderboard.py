"""Makes the tables of `leaderboard.md` from the entries in `lab/benchmark/entries`, when the site is built.

    python docs/tools/leaderboard.py

An entry that cannot be taken is named with the reason, the tables are made of the others, and the program ends with status 1.
"""

import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from decoupled_lab.benchmark import statistics
from decoupled_lab.benchmark.statistics import Ratio
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, SUITE
from decoupled_lab.benchmark.table import aligned

sys.path.insert(0, str(Path(__file__).parent))
from leaderboard_entries import Entry, take

RECOMMENDED = "Ladder()"
SEEN = "contexts"  # a group whose fields only a contextual policy sees
LETTERS = 30  # of a policy in a table
DASH = "\N{EN DASH}"  # "to" would break the cells into two lines
NOT_RUN = Ratio(math.nan, math.nan, math.nan)


def row_of(entry: Entry) -> list[Ratio]:
    """The ratios of an entry: overall, and in every group of the suite; NaN in one that did not run."""
    here = {each["name"]: statistics.of_group(each) for each in entry["groups"]}
    return [statistics.overall(entry), *(here.get(group, NOT_RUN) for group in SUITE.groups)]


def label(entry: Entry) -> str:
    """The policy as the tables name it, with as many parameters as they have room for; a wrapper names what it holds.

    >>> label({"policy": {"name": "CentredFTPL(c=0.5, exploit_c=3, mean_rate=0.1)"}})
    '`CentredFTPL(c=0.5, …)`'
    >>> label({"policy": {"name": "ContextualLadder(segments=('segment',), numbers=('x',))"}})
    '`ContextualLadder(…)`'
    >>> label({"policy": {"name": "LinUCB(segments=('segment',), numbers=('x',), alpha=1.0)"}})
    '`LinUCB(…)`'
    >>> label({"policy": {"name": "Forgetting(policy=ContextualLadder(segments=('segment',)), period=100)"}})
    '`Forgetting(ContextualLadder(…))`'
    """
    name = entry["policy"]["name"]
    if len(name) > LETTERS and (inner := re.fullmatch(r"(\w+)\(policy=(\w+)\(.+", name)):
        name = f"{inner[1]}({inner[2]}(…))"
    if len(name) > LETTERS:
        first = f"{name.partition(',')[0]}, …)"
        whole = len(first) <= LETTERS and first.count("(") == 1
        name = first if whole else f"{name.partition('(')[0]}(…)"
    return f"`{name}`"


def number(value: float) -> str:
    """A ratio in three digits.

    >>> number(0.4812), number(12.34), number(float("nan"))
    ('0.48', '12.3', '-')
    """
    return "-" if math.isnan(value) else f"{value:.{2 if value < 9.995 else 1}f}"


def main_table(board: Sequence[Entry]) -> str:
    """Ratios by group, with the lowest of each in bold."""
    rows = [[each.ratio for each in row_of(entry)] for entry in board]
    lowest = [
        min(column, key=lambda value: (math.isnan(value), value))
        for column in zip(*rows, strict=True)
    ]
    lines = [("policy", "rank", "overall", *SUITE.groups, "architecture", "version")]
    for rank, entry, row in zip(ranks(board), board, rows, strict=True):
        cells = (
            f"**{number(value)}**" if number(value) == number(best) else number(value)
            for value, best in zip(row, lowest, strict=True)
        )
        about = entry["environment"]
        lines.append((label(entry), rank, *cells, about["architecture"], about["decoupled"]))
    return aligned(lines)


def ranks(board: Sequence[Entry]) -> Iterator[str]:
    """The rank of each entry: all that it may have, as far as the intervals of the overall ratio overlap."""
    found = [statistics.overall(entry) for entry in board]
    for own in found:
        first = 1 + sum(other.high < own.low for other in found)
        last = len(found) - sum(other.low > own.high for other in found)
        yield str(first) if first == last else f"{first}{DASH}{last}"


def interval_table(board: Sequence[Entry]) -> str:
    """The 95 % intervals of the same statistics."""
    rows = (
        (label(entry), *(interval(each).replace(" to ", DASH) for each in row_of(entry)))
        for entry in board
    )
    return aligned([("policy", "overall", *SUITE.groups), *rows])


def interval(found: Ratio) -> str:
    """An interval in words."""
    return "-" if math.isnan(found.low) else f"{number(found.low)} to {number(found.high)}"


def compared(
    board: Sequence[Entry], group: str, recommended: str = RECOMMENDED
) -> Iterator[tuple[Ratio, Entry]]:
    """Every policy's ratio to the recommended one in a group that both have played, run by run."""
    ours = [entry for entry in board if entry["policy"]["name"] == recommended][:1]
    tasks = [task for entry in ours for task in statistics.tasks_of(entry, group)]
    for entry in board:
        theirs = statistics.tasks_of(entry, group)
        if (
            tasks
            and entry not in ours
            and [each["name"] for each in theirs] == [each["name"] for each in tasks]
        ):
            yield statistics.paired(theirs, tasks), entry


def better_ones(board: Sequence[Entry], recommended: str = RECOMMENDED) -> Iterator[str]:
    """The groups in which other policies have less regret than the recommended one, and how sure that is; lowest first."""
    for group, title in SUITE.groups.items():
        less = sorted(
            (each for each in compared(board, group, recommended) if each[0].ratio < 1.0),
            key=lambda each: each[0],
        )
        if less:
            found = (
                f"{label(entry)} {number(ratio.ratio)} ({interval(ratio)})" for ratio, entry in less
            )
            yield f"- {title}: {', '.join(found)}."


def without_fields(board: Sequence[Entry]) -> str:
    """The overall ratios of the leading entries without the group whose fields only contextual policies see."""
    found = (
        (
            label(entry),
            statistics.overall(
                {"groups": [each for each in entry["groups"] if each["name"] != SEEN]}
            ),
        )
        for entry in board[:3]
    )
    return ", ".join(f"{name} {number(ratio.ratio)} ({interval(ratio)})" for name, ratio in found)


def tables() -> str:
    """What the page shows of the entries."""
    board = take().entries
    titles = "; ".join(f"*{name}*: {title[0].lower()}{title[1:]}" for name, title in GROUPS.items())
    long = [(label(entry), f"`{entry['policy']['name']}`") for entry in board]
    intervals = "The 95 % intervals of these ratios, not corrected for the number of comparisons. Where those of *overall* overlap, a policy may have any of several ranks."
    better = f"In these groups other policies have a ratio to `{RECOMMENDED}` below 1, run by run. Where the interval includes 1, the difference may be chance:"
    fields = f"In *{SEEN}* and *mmlu*, only contextual policies see the fields of a request. Overall ratios without *{SEEN}*: {without_fields(board)}."
    return "\n\n".join(
        (
            main_table(board),
            f"Bold: the lowest. Groups: {titles}. The last {len(NEED_DATA)} need data that the package does not have.",
            fields,
            " ".join(f"{short} stands for {name}." for short, name in long if short != name),
            intervals,
            interval_table(board),
            f"## Where `{RECOMMENDED}` is not the best",
            "\n".join((better, "", *better_ones(board))),
        )
    )


def main() -> int:
    """Say which entries are taken and which are refused."""
    board, refused = take()
    for each in refused:
        print(f"refused: {each}", file=sys.stderr)
    print(f"{len(board)} entries")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
