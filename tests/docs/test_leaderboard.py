"""The leaderboard: made of the entries alone, and an entry that is not sound is refused and spoils nothing."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled_lab.benchmark import entry as entries
from decoupled_lab.benchmark.loading import Source
from decoupled_lab.benchmark.statistics import Ratio
from decoupled_lab.benchmark.suite import GROUPS, SIZES
from support.made_entries import LEVELS, made_up
from support.pages import ROOT, tool

leaderboard, leaderboard_entries = map(tool, ("leaderboard", "leaderboard_entries"))
take = leaderboard_entries.take
POLICY = "class EpsilonGreedy: ...\n"


def put(folder: Path, name: str, entry: dict[str, Any]) -> Path:
    """A file among the entries, with the digest of what it holds."""
    file = folder / "entries" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    entries.write(file, entry)
    return file


def from_file(**options: Any) -> dict[str, Any]:
    return made_up(file="epsilon.py", sha256=sha256(POLICY.encode()).hexdigest(), **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sound entries, one of them of a file."""
    put(tmp_path, "ladder", made_up("Ladder()", LEVELS["Ladder()"]))
    put(tmp_path, "epsilon", from_file())
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/epsilon.py").write_text(POLICY)
    return tmp_path


def test_every_entry_is_taken_and_in_the_tables() -> None:
    taken = take()
    assert not taken.refused
    page = leaderboard.tables()
    assert all(f"| {leaderboard.label(entry)} " in page for entry in taken.entries)
    # Nobody who is below the ladder in a column is left out below the tables.
    (ours,) = (
        entry for entry in taken.entries if entry["policy"]["name"] == leaderboard.RECOMMENDED
    )
    lines = dict(
        line.removeprefix("- ").split(": ", 1) for line in leaderboard.better_ones(taken.entries)
    )
    for entry in taken.entries:
        for title, own, other in zip(
            GROUPS.values(),
            leaderboard.row_of(ours)[1:],
            leaderboard.row_of(entry)[1:],
            strict=True,
        ):
            assert (other.ratio < own.ratio) == (
                leaderboard.label(entry) in lines.get(title, "")
            ), title


def test_sound_entries_are_ranked_and_of_two_of_one_policy_neither_is_taken(folder: Path) -> None:
    board, refused = take(folder)
    assert not refused
    assert [entry["policy"]["name"] for entry in board] == [
        "Ladder()",
        "EpsilonGreedy(epsilon=0.1)",
    ]
    table = leaderboard.main_table(board)
    ranks = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert [(name.strip(), rank.strip()) for name, rank in ranks] == [
        ("`Ladder()`", "1"),
        ("`EpsilonGreedy(epsilon=0.1)`", "2"),
    ]
    # The made-up policy has less regret than the ladder where switches cost, and nowhere else.
    assert [line.partition(":")[0] for line in leaderboard.better_ones(board)] == [
        "- A price for switches"
    ]
    put(folder, "again", made_up("Ladder()"))
    board, refused = take(folder)
    assert [entry["policy"]["name"] for entry in board] == ["EpsilonGreedy(epsilon=0.1)"]
    assert [each.partition(": ")[0] for each in refused] == [
        f"{folder.name}/entries/{name}.json" for name in ("again", "ladder")
    ]
    assert all("of another; leave one out" in each for each in refused)


def test_policies_whose_intervals_overlap_share_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = ((0.5, 0.4, 0.6), (0.6, 0.5, 0.7), (0.8, 0.65, 0.9), (2.0, 1.9, 2.1))
    found = {name: Ratio(*ratio) for name, ratio in zip("abcd", ratios, strict=True)}
    monkeypatch.setattr(leaderboard.statistics, "overall", found.get)
    assert list(leaderboard.ranks(list(found))) == ["1–2", "1–3", "2–3", "4"]  # noqa: RUF001


def short(entry: dict[str, Any]) -> dict[str, Any]:
    """Without the task in which it is worst, and with a digest that fits."""
    lines = [task for task in entry["tasks"] if task["name"] != "punish-last-8"]
    return entries.assembled(SIZES["standard"], entry["policy"], lines, 1.0)


def of_data(entry: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """With another task of data, and a digest that fits."""
    lines = [
        {**task, **(changed if task["group"] == "recorded" else {})} for task in entry["tasks"]
    ]
    return entries.assembled(SIZES["standard"], entry["policy"], lines, 1.0)


def other_references(entry: dict[str, Any]) -> dict[str, Any]:
    """As if a reference had been worse, so that the policy looks better."""
    first, *lines = entry["tasks"]
    other, apart = first["references"]["FTPL()"], first["differences"]["FTPL()"]
    other["mean"] += 100.0
    first["differences"]["FTPL()"] = {end: value - 100.0 for end, value in apart.items()}
    return entries.assembled(SIZES["standard"], entry["policy"], [first, *lines], 1.0)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (made_up("Quick()", size="quick"), "run it without --quick"),
        (short(made_up("Short()")), "tasks = 31: are not those of decoupled-1"),
        (of_data(made_up("FTPL()"), arms=4), "are not those of decoupled-1"),
        (of_data(made_up("FTPL()"), name="recorded-mine"), "are not those of decoupled-1"),
        (made_up("Lost()", file="lost.py", sha256="0" * 64), "must lie in lab/benchmark/policies"),
        (made_up(file="epsilon.py", sha256="0" * 64), "must lie in lab/benchmark/policies"),
        (made_up("Mine()"), "is no policy of the package, and has no file"),
        (made_up("FTPL()", file="epsilon.py"), "is no policy of the package, and has no file"),
        (from_file(name="TopTwo()"), "is the name of a policy of the package"),
        (
            other_references(made_up("FTPL()")),
            "has other references in stochastic-easy-5 than most",
        ),
    ],
)
def test_an_incomparable_entry_is_refused(folder: Path, entry: dict[str, Any], reason: str) -> None:
    before = take(folder).entries
    put(folder, "zzz", entry)
    board, (refused,) = take(folder)
    assert refused.startswith(f"{folder.name}/entries/zzz.json: ")
    assert reason in refused
    assert board == before


@pytest.mark.parametrize("file", sorted((ROOT / "lab/benchmark/policies").glob("*.py")), ids=str)
def test_a_policy_of_an_entry_keeps_the_contract(file: Path) -> None:
    dc.testing.check_policy(Source(str(file)).load(), rounds=300)
