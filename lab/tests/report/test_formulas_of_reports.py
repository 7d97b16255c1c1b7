"""Formulas in the texts of a report: as MathML on the page, as plain characters in files."""

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import decoupled_lab.paper
from decoupled.errors import ParameterError
from decoupled_lab.report.claims import Claim
from decoupled_lab.report.page import Section, build_page
from decoupled_lab.report.text import readable, typeset


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
    for source in sorted(Path(decoupled_lab.paper.__file__).parent.glob("*.py")):
        reader.visit(ast.parse(source.read_text()))
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


def test_both_brackets_of_a_power_have_one_size() -> None:
    (formula,) = elements(typeset("$(1 + u)^{-3}$"))
    brackets = [each for each in formula.iter("mo") if each.text in ("(", ")")]
    assert [each.get("stretchy") for each in brackets] == ["false", "false"]


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
    assert len(texts) > 12
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
