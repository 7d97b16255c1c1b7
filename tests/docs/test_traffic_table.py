"""The tables of real traffic in simulation.md: rows and columns are the script's, and cells are what it measures."""

import re

import numpy as np

import decoupled as dc
from support.doc_tools import tool
from support.pages import ROOT

measured_tables, regrets, traffic_table = map(tool, ("measured_tables", "regrets", "traffic_table"))

PAGE = tool("lists").on_page_markdown((ROOT / "docs" / "simulation.md").read_text())  # as on the site
SECTION = PAGE.split("## Under real traffic")[1].split("\n## ")[0]
WORLDS = {measured_tables.INSTANCES[name]: name for name in traffic_table.WORLDS}
FEWER = 100  # runs; the page has 1,000


def tables() -> dict[str, list[list[str]]]:
    """The rows of each table, under the name of its world; the first has the names of the policies."""
    found: dict[str, list[list[str]]] = {}
    for part in re.findall(r"(?:^\|.*\n)+", SECTION, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in line.strip("|\n").split(" | ")] for line in part.splitlines()
        )
        if head[0] in WORLDS:
            found[head[0]] = [head[1:], *rows]
    return found


def test_rows_and_columns_are_the_script_s() -> None:
    assert tables().keys() == WORLDS.keys()
    for head, *rows in tables().values():
        assert head == [measured_tables.POLICIES[name] for name in traffic_table.POLICIES]
        assert [row[0] for row in rows] == [measured_tables.TRAFFIC[kind] for kind in traffic_table.TRAFFIC]
        assert all(re.fullmatch(r"\d+ ± \d+", cell) for row in rows for cell in row[1:])


def test_cells_are_what_the_script_measures() -> None:
    # Two cells in each row of one table, which share machine code. 4.5 joint standard errors: 14 cells raise a false
    # alarm in 1e-4 of all seeds.
    world, policies = traffic_table.WORLDS["easy"], [dc.FTPL(), dc.Ladder()]
    rows = {row[0]: row[1:] for row in tables()[measured_tables.INSTANCES["easy"]][1:]}
    for name, how in traffic_table.TRAFFIC.items():
        results = dc.simulate(
            policies, world, regrets.ROUNDS, FEWER, seed=1, checkpoints=1, traffic=dc.Traffic(**how)
        )
        for policy, cell in zip(policies, rows[measured_tables.TRAFFIC[name]], strict=False):
            regret = results.final_regret(policy)
            mean, half = map(float, cell.split(" ± "))
            error = np.hypot(regret.std(ddof=1) / np.sqrt(FEWER), (half + 0.5) / 1.96)
            assert abs(regret.mean() - mean) < 4.5 * error, (name, policy.label)


def test_the_least_regret_is_where_the_page_says() -> None:
    for head, *rows in tables().values():
        for row in rows:
            means = [float(cell.split(" ± ")[0]) for cell in row[1:]]
            assert head[int(np.argmin(means))] == "`Ladder()`"
