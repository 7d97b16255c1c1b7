"""Makes `leaderboard.md` from the entries in `lab/benchmark/entries`.

    python docs/tools/leaderboard.py
    python docs/figures/make.py --only leaderboard

An entry that cannot be taken is named with the reason, the page is made of the others, and the program ends with status 1.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from decoupled_lab.benchmark import statistics
from decoupled_lab.benchmark.statistics import YARDSTICK, Ratio, quantile
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, SUITE
from decoupled_lab.benchmark.table import aligned

sys.path.insert(0, str(Path(__file__).parent))
from leaderboard_entries import Entry, identity, take

PAGE = Path(__file__).resolve().parents[1] / "leaderboard.md"
RECOMMENDED = "Ladder()"
LETTERS = 30  # of a policy in a table
DASH = "\N{EN DASH}"  # "to" would break the cells into two lines
NOT_RUN = Ratio(math.nan, math.nan, math.nan)


def row_of(entry: Entry) -> list[Ratio]:
    """The ratios of an entry: overall, and in every group of the suite; NaN in one that did not run."""
    here = {each["name"]: statistics.of_group(each) for each in entry["groups"]}
    return [statistics.overall(entry), *(here.get(group, NOT_RUN) for group in GROUPS)]


def label(entry: Entry) -> str:
    """The policy as the tables name it, with as many parameters as they have room for.

    >>> label({"policy": {"name": "FTPL(c=0.5, ranking='auto', estimator='centred')"}})
    '`FTPL(c=0.5, …)`'
    >>> label({"policy": {"name": "ContextualLadder(segments=('segment',), numbers=('x',))"}})
    '`ContextualLadder(…)`'
    """
    name = entry["policy"]["name"]
    if len(name) > LETTERS:
        first = f"{name.partition(',')[0]}, …)"
        name = first if len(first) <= LETTERS else f"{name.partition('(')[0]}(…)"
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
        min(column, key=lambda value: (math.isnan(value), value)) for column in zip(*rows, strict=True)
    ]
    lines = [("policy", "rank", "overall", *GROUPS, "architecture", "version")]
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
    """The 95 % intervals of the same ratios."""
    rows = (
        (label(entry), *(interval(each).replace(" to ", DASH) for each in row_of(entry))) for entry in board
    )
    return aligned([("policy", "overall", *GROUPS), *rows])


def interval(found: Ratio) -> str:
    """An interval in words."""
    return "-" if math.isnan(found.low) else f"{number(found.low)} to {number(found.high)}"


def compared(board: Sequence[Entry], group: str) -> Iterator[tuple[Ratio, Entry]]:
    """Every policy's ratio to the recommended one in a group that both have played, run by run."""
    ours = [entry for entry in board if entry["policy"]["name"] == RECOMMENDED][:1]
    tasks = [task for entry in ours for task in statistics.tasks_of(entry, group)]
    for entry in board:
        theirs = statistics.tasks_of(entry, group)
        if (
            tasks
            and entry not in ours
            and [each["name"] for each in theirs] == [each["name"] for each in tasks]
        ):
            yield statistics.paired(theirs, tasks), entry


def better_ones(board: Sequence[Entry]) -> Iterator[str]:
    """The groups in which the interval of another policy's ratio to the recommended one lies below 1; the lowest there."""
    for group, title in GROUPS.items():
        better = [each for each in compared(board, group) if each[0].verdict == "better"]
        if better:
            best, entry = min(better, key=lambda each: each[0])
            yield f"- {title}: {label(entry)} has {number(best.ratio)} times its regret ({interval(best)})."


def between_entries(board: Sequence[Entry], one_architecture: bool) -> Iterator[float]:
    """How far apart any two entries are in the mean of each task and policy that both have.

    The unit is half the 95 % interval of the mean.
    """
    for one, other in combinations(board, 2):
        alike = one["environment"]["architecture"] == other["environment"]["architecture"]
        if alike is not one_architecture:
            continue
        theirs = {task["name"]: task for task in other["tasks"]}
        for task in one["tasks"]:
            if task["name"] in theirs:
                yield from _apart(task, theirs[task["name"]], identity(one)[:2] == identity(other)[:2])


def _apart(task: Entry, other: Entry, one_policy: bool) -> Iterator[float]:
    pairs = [(mean, other["references"][name]) for name, mean in task["references"].items()]
    if one_policy:
        pairs.append((task["regret"], other["regret"]))
    for one, two in pairs:
        difference = abs(one["mean"] - two["mean"])
        half = (
            quantile(task["runs"])
            * math.hypot(one["standard_error"], two["standard_error"])
            / math.sqrt(2.0)
        )
        yield difference / half if half else difference and math.inf


def architectures(board: Sequence[Entry]) -> Iterator[str]:
    """What the entries tell of machines: equal to the bit on one architecture, and how far apart on two."""
    same, across = (list(between_entries(board, kind)) for kind in (True, False))
    names = sorted({entry["environment"]["architecture"] for entry in board})
    yield "Entries of one architecture, with one version of package, Python, NumPy and C library, are equal to the bit."
    if same:
        differ = sum(far > 0.0 for far in same)
        found = f"{differ:,} of them differ" if differ else "all are equal"
        yield f"Here {len(same):,} pairs of means are of one architecture, and {found}."
    if across:
        differ = sum(far > 0.0 for far in across)
        yield "Between architectures a digit of a logarithm may differ, and single runs with it."
        yield (
            f"Of {len(across):,} pairs of means of {' and '.join(names)} {differ:,} differ, by at most "
            f"{max(across):.2f} times half their 95 % interval."
        )
    else:
        yield f"So far all entries are of {names[0]}: how far means differ on another architecture cannot be said here yet."


def page(board: Sequence[Entry]) -> str:
    """The page."""
    free = len(GROUPS) - len(NEED_DATA)
    titles = "; ".join(f"*{name}*: {title[0].lower()}{title[1:]}" for name, title in GROUPS.items())
    wins = list(better_ones(board))
    long = [(label(entry), f"`{entry['policy']['name']}`") for entry in board]
    return "\n".join(
        (
            "---",
            "hide: [toc]  # the tables are wide",
            "---",
            "",
            "<!-- Made by docs/tools/leaderboard.py from lab/benchmark/entries. -->",
            "",
            "# Leaderboard",
            "",
            f"Regret on the suite `{SUITE.name}` as a multiple of that of `{YARDSTICK}`, the paper's policy: below 1 is better.",
            f"The rank is by the geometric mean over the {free} groups that need no data. [The benchmark](benchmark.md) has the suite.",
            "",
            "![Policies and groups of worlds, coloured by the ratio of regrets](figures/leaderboard.png)",
            "",
            main_table(board),
            "",
            f"Bold: the lowest. Groups: {titles}. The last {len(NEED_DATA)} need data that the package does not have.",
            *(f"{short} stands for {name}." for short, name in long if short != name),
            "",
            "The 95 % intervals of these ratios, not corrected for the number of comparisons. Where those of *overall* overlap, a policy may have any of several ranks.",
            "",
            interval_table(board),
            "",
            f"## Where `{RECOMMENDED}` is not the best",
            "",
            (
                f"`{RECOMMENDED}` learns which of several rules to follow. In these groups"
                if wins
                else "In no group"
            )
            + " the 95 % interval of another policy's ratio to it, run by run, lies below 1 (not corrected for the number of comparisons)"
            + (":" if wins else "."),
            *(["", *wins] if wins else []),
            "",
            "## One machine and another",
            "",
            *architectures(board),
            "",
            "## Add yours",
            "",
            "Run [`decoupled benchmark my_policy.py`](benchmark.md) with an unchanged package. Copy `entry.json` to",
            "`lab/benchmark/entries/my_policy.json` and the policy to `lab/benchmark/policies/`, run `python docs/tools/leaderboard.py` and",
            "`python docs/figures/make.py --only leaderboard`, and propose the change. Entries of the quick size, of another suite, or whose numbers do not",
            "fit together are refused with the reason. That is no proof: the suite is public, and no sandbox, since a policy runs in the process of its worlds.",
            "So its file is read and run again before an entry is taken, and the digest must be the same.",
            "",
        )
    )


def main() -> int:
    """Write the page, and say what was refused."""
    board, refused = take()
    for each in refused:
        print(f"refused: {each}", file=sys.stderr)
    PAGE.write_text(page(board))
    print(f"docs/{PAGE.name}: {len(board)} entries")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
