"""The pages of the documentation: their code, the output they show, and the scripts that make parts of them."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LANGUAGES = ("python", "sh", "toml", "text", "bibtex", "js")
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def tool(name: str) -> Any:
    """A script of docs/tools, as a module; it imports others from its folder."""
    folder = str(ROOT / "docs" / "tools")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


class Block(NamedTuple):
    """A block of code, its language, and the output shown under it."""

    language: str
    code: str
    output: str | None


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages; a `text` block is the output of the block before it."""
    found = FENCE.findall(page.read_text())
    following = [*found[1:], ("", "")]
    return [
        Block(language, code, shown if kind == "text" else None)
        for (language, code), (kind, shown) in zip(found, following, strict=False)
        if language in languages
    ]


def commands(page: Path) -> Iterator[str]:
    """The lines of a page's shell blocks, without comments and with continued lines joined."""
    for block in blocks(page, "sh"):
        for line in block.code.replace("\\\n", " ").splitlines():
            text = re.sub(r"(^|\s)#.*", "", line).strip()
            if text:
                yield text


def shows(shown: str, printed: str, code: str) -> bool:
    """Whether a page shows what its code printed."""
    return alike(shown, printed, drawn=draws(code))


def alike(shown: str, printed: str, *, drawn: bool = True) -> bool:
    """Whether a page shows what was printed: the same words, and the same numbers in the same form.

    Where nothing is drawn, a number may differ by one in its last digit. Draws follow a seed, so on one kind
    of machine they are the same too; elsewhere a digit of a logarithm may differ, and the runs with it, so
    numbers that follow draws may differ by a fifth as well.
    """
    if NUMBER.sub(_form, shown).split() != NUMBER.sub(_form, printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    share = 0.2 if drawn else 0.0
    return all(
        abs(_value(one) - _value(two)) <= _step(two) + share * abs(_value(two))
        for one, two in pairs
    )


def draws(code: str) -> bool:
    """Whether the numbers that some code prints may depend on random draws."""
    return re.search(r"simulate\(|\.start\(|random|seed=", code) is not None


def _form(number: re.Match[str]) -> str:
    """The format of a number: its decimals, and whether it has an exponent."""
    whole, _, exponent = number[0].partition("e")
    decimals = whole.partition(".")[2]
    return "0" + ("." if "." in whole else "") + "0" * len(decimals) + ("e0" if exponent else "")


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _step(number: str) -> float:
    """One in the last digit, and a little for the arithmetic of the comparison."""
    whole, _, exponent = number.partition("e")
    return 1.001 * 10.0 ** (int(exponent or 0) - len(whole.partition(".")[2]))
