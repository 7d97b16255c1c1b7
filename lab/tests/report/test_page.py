"""A report opens with a tally of its verdicts and its main figure."""

import numpy as np

from decoupled.plots import Panel, Picture, Series
from decoupled_lab.report.claims import Claim, Measure, judged_above, not_judged
from decoupled_lab.report.page import ReportTable, Section, build_page, counted


def claim(low: float, high: float, name: str = "a") -> Claim:
    part = Measure("all", (low + high) / 2, low, high, 50)
    return judged_above(name, "section 1", f"Claim {name} & co.", "ratio", [part], 1.0)


HOLDS, FAILS, OPEN = claim(2, 3, "one"), claim(0.2, 0.4, "two"), claim(0.9, 1.5, "three")
PARTLY = HOLDS._replace(id="four", verdict="holds only for K = 8")
UNJUDGED = not_judged(HOLDS._replace(id="five"), "no data")
CURVE = Series("FTPL", np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([[0.5, 0.5], [1.0, 1.0]]))


def page(*claims: Claim) -> str:
    pictures = tuple(Picture(name, name, "", (Panel("", (CURVE,)),)) for name in ("first", "second"))
    table = ReportTable("Final <regret>", ("policy", "mean"), (("FTPL", "1.0"),))
    return build_page(
        "A report",
        "The lead.",
        {"seed": "0"},
        [Section("", claims, pictures, (table,), name="s", title="S")],
    )


def test_verdicts_are_counted_by_kind() -> None:
    assert counted([HOLDS, HOLDS, FAILS, OPEN, PARTLY, UNJUDGED]) == {
        "hold": 2,
        "hold in part": 1,
        "fail": 1,
        "undecided": 1,
        "not judged": 1,
    }
    assert counted([HOLDS]) == {"hold": 1}


def test_the_tally_and_the_main_figure_come_before_everything_else() -> None:
    text = page(HOLDS, OPEN)
    order = ['class="tally"', 'id="figure-first"', "<nav>", 'id="claims"', 'id="s"', 'id="figure-second"']
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert text.count('id="figure-first"') == 1
    assert 'aria-label="Verdicts on 2 claims"' in text
    assert 'class="tally"' not in page()


def test_an_undecided_claim_says_how_many_runs_would_decide_it() -> None:
    needed = OPEN.runs_to_decide  # 50 * (0.3 / 0.2 * 1.654)^2, rounded up
    assert needed == 310
    assert "about 310 runs would decide it; it has 50" in page(OPEN)
    assert "would decide it" not in page(HOLDS, FAILS)


def test_a_wide_table_can_be_scrolled_by_keyboard() -> None:
    assert '<div class="wide" tabindex="0" role="region" aria-label="Final &lt;regret&gt;">' in page()


def test_the_ends_of_a_band_are_in_the_page() -> None:
    assert '"band":[[0.5,1.5],[2.0,3.0]]' in page()
