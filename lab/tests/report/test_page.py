"""A page opens with a tally of its verdicts and its main figure; static figures, and formulas as MathML and as plain characters."""

import ast
import csv
import io
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import decoupled_lab.paper
from decoupled.errors import ParameterError
from decoupled.plots import Panel, Picture, Series, draw
from decoupled_lab.report.claims import Claim, Measure, judged, not_judged
from decoupled_lab.report.page import ReportTable, Section, build_page, counted
from decoupled_lab.report.pictures import numbers_of, save_static
from decoupled_lab.report.text import readable, typeset


def claim(low: float, high: float, name: str = "a") -> Claim:
    part = Measure("all", (low + high) / 2, low, high, 50)
    return judged(name, "section 1", f"Claim {name} & co.", "ratio", [part], 1.0)


HOLDS, FAILS, OPEN = claim(2, 3, "one"), claim(0.2, 0.4, "two"), claim(0.9, 1.5, "three")
PARTLY = HOLDS._replace(id="four", verdict="holds only for K = 8")
UNJUDGED = not_judged(HOLDS._replace(id="five"), "no data")
CURVE = Series(
    "FTPL", np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([[0.5, 0.5], [1.0, 1.0]])
)


def page(*claims: Claim) -> str:
    pictures = tuple(
        Picture(name, name, "", (Panel("", (CURVE,)),)) for name in ("first", "second")
    )
    table = ReportTable("Final <regret>", ("policy", "mean"), (("FTPL", "1.0"),))
    section = Section("", claims, pictures, (table,), name="s", title="S")
    return build_page("A report", "The lead.", {"seed": "0"}, [section])


def test_verdicts_are_counted_by_kind() -> None:
    kinds = {"hold": 2, "hold in part": 1, "fail": 1, "undecided": 1, "not judged": 1}
    assert counted([HOLDS, HOLDS, FAILS, OPEN, PARTLY, UNJUDGED]) == kinds
    assert counted([HOLDS]) == {"hold": 1}


def test_the_tally_and_the_main_figure_come_before_everything_else() -> None:
    text = page(HOLDS, OPEN)
    order = [
        'class="tally"',
        'id="figure-first"',
        "<nav>",
        'id="claims"',
        'id="s"',
        'id="figure-second"',
    ]
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
    assert (
        '<div class="wide" tabindex="0" role="region" aria-label="Final &lt;regret&gt;">' in page()
    )


def test_the_ends_of_a_band_are_in_the_page() -> None:
    assert '"band":[[0.5,1.5],[2.0,3.0]]' in page()


X = np.array([1.0, 10.0, 100.0])


def picture(panels: int = 1, **options: bool) -> Picture:
    series = (
        Series("FTPL", X, X / 2, X / 10, 0),
        Series("points", X, X + 1.0, np.ones(3), 1, "points"),
        Series("points", X, X + 1.0, None, 1, "fit"),
    )
    panel = Panel("title", series, "round", "regret", **options)
    return Picture("example", "An example", "With a caption.", (panel,) * panels, columns=2)


def test_every_format_is_written_and_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        save_static(picture(3), tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["example.csv", "example.pdf", "example.png", "example.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), (
            name
        )


def test_the_numbers_behind_a_picture() -> None:
    lines = list(csv.DictReader(io.StringIO(numbers_of(picture()))))
    assert len(lines) == 9
    assert [float(line["y"]) for line in lines[:3]] == [0.5, 5.0, 50.0]
    assert [float(line["low"]) for line in lines[:3]] == pytest.approx([0.4, 4.0, 40.0])
    assert [float(line["high"]) for line in lines[:3]] == pytest.approx([0.6, 6.0, 60.0])
    assert [line["high"] for line in lines[6:]] == ["", "", ""]


def test_a_band_may_reach_further_on_one_side() -> None:
    lopsided = Series("FTPL", X, X, np.stack([X / 2, 3 * X]))
    lines = csv.DictReader(io.StringIO(numbers_of(Picture("a", "", "", (Panel("", (lopsided,)),)))))
    assert [(float(line["low"]), float(line["high"])) for line in lines] == [
        (0.5, 4.0),
        (5, 40),
        (50, 400),
    ]
    (band,) = draw(Picture("a", "", "", (Panel("", (lopsided,)),))).axes[0].collections
    drawn = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (drawn.min(), drawn.max()) == (0.5, 400.0)


@pytest.mark.parametrize(
    "options", [{}, {"log_x": True}, {"log_y": True}, {"log_x": True, "log_y": True}]
)
def test_axes_follow_the_panel(options: dict[str, bool]) -> None:
    axes = draw(picture(**options)).axes[0]
    assert axes.get_xscale() == ("log" if options.get("log_x") else "linear")
    assert axes.get_yscale() == ("log" if options.get("log_y") else "linear")


def test_a_fit_is_not_named_twice() -> None:
    _, labels = draw(picture()).axes[0].get_legend_handles_labels()
    assert labels == ["FTPL", "points"]


class Texts(ast.NodeVisitor):
    """Collects the texts of a program, with a 1 for every value that a text is given when it runs."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.append(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = (str(each.value) if isinstance(each, ast.Constant) else "1" for each in node.values)
        self.found.append("".join(parts))


def texts_with_formulas() -> list[str]:
    """Every text of the reproduction with a formula in it."""
    reader = Texts()
    folder = Path(decoupled_lab.paper.__file__).parent
    for source in sorted(folder.glob("*.py")):
        reader.visit(ast.parse(source.read_text()))
    for values in tomllib.loads((folder / "claims.toml").read_text()).values():
        reader.found += map(str, values.values())
    sections = tomllib.loads((folder / "sections.toml").read_text()).values()
    reader.found += [" ".join(text.split()) for text in sections]
    return [text for text in reader.found if re.search(r"\$\S", text)]


def elements(text: str) -> list[ElementTree.Element]:
    """The formulas of a text, parsed: a browser ignores an error in MathML, a parser does not."""
    return [ElementTree.fromstring(found) for found in re.findall(r"<math>.*?</math>", text)]


def test_powers_indices_roots_and_fractions() -> None:
    (formula,) = elements(typeset(r"as $\frac{1}{\sqrt{K_i}} (1 + \eta u)^{-3} \le 10^6$"))
    assert "".join(formula.itertext()) == "1Ki(1+ηu)−3≤106"  # noqa: RUF001
    assert [child.tag for child in formula][:2] == ["mfrac", "mo"]
    assert formula.find(".//msqrt/mrow/msub") is not None
    (power,) = [each for each in formula.findall("msup") if each[1].tag == "mrow"]
    assert "".join(power[1].itertext()) == "−3"  # noqa: RUF001
    (number,) = [each for each in formula.findall("msup") if each[1].tag == "mn"]
    assert [each.text for each in number] == ["10", "6"]


def test_an_escaped_sign_stays_one_sign() -> None:
    assert typeset("$a &lt; b$") == "<math><mi>a</mi><mo>&lt;</mo><mi>b</mi></math>"


@pytest.mark.parametrize("text", ["for $5 or $6", "costs $ 5 $ each", "no formula", "one $ only"])
def test_a_price_is_no_formula(text: str) -> None:
    assert typeset(text) == readable(text) == text


def test_an_unknown_command_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"\\unknown.*sqrt"):
        typeset(r"$\unknown{x}$")


def test_the_texts_of_the_reproduction_are_typeset() -> None:
    texts = texts_with_formulas()
    assert len(texts) > 20
    for text in texts:
        shown = typeset(text)
        assert elements(shown), text
        assert not re.search(r"\$\S|\\", shown), text
        assert not re.search(r"[$\\{}]", readable(text)), text


def test_a_claim_is_typeset_on_the_page_and_readable_in_its_file() -> None:
    statement = r"Regret is at most $\sqrt{KT}$ & more."
    claim = Claim("root", r"Theorem 3.1: $O(\sqrt{KT})$", statement, "$x$", "", (), "holds")
    page = build_page("Title", "", {}, [Section("For $K^2$ arms.", (claim,), ())])
    body = page.partition("<body>")[2].partition("<script")[0]
    assert len(elements(body)) == 4
    assert "$" not in body
    assert "&amp; more" in body
    assert claim.to_dict()["statement"] == "Regret is at most √(KT) & more."
    assert claim.to_dict()["place"] == "Theorem 3.1: O(√(KT))"
