"""The pages of the documentation: their code, and what they say it prints."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LANGUAGES = ("python", "sh", "toml", "text")
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


class Block(NamedTuple):
    """A block of code, its language, and the output shown under it."""

    language: str
    code: str
    output: str | None


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages; a `text` block is what the block before it prints."""
    found = FENCE.findall(page.read_text())
    following = [*found[1:], ("", "")]
    return [
        Block(language, code, shown if kind == "text" else None)
        for (language, code), (kind, shown) in zip(found, following, strict=False)
        if language in languages
    ]


def commands(page: Path) -> Iterator[str]:
    """The lines of a page's shell blocks: comments gone, continued lines joined."""
    for block in blocks(page, "sh"):
        for line in block.code.replace("\\\n", " ").splitlines():
            text = re.sub(r"(^|\s)#.*", "", line).strip()
            if text:
                yield text


def alike(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: the same words, and numbers that are about the same.

    Draws follow a seed, so on one kind of machine the numbers are the same; elsewhere a digit of a
    logarithm may differ, and the runs with it.
    """
    if NUMBER.sub("0", shown).split() != NUMBER.sub("0", printed).split():
        return False
    pairs = zip(_numbers(shown), _numbers(printed), strict=True)
    return all(abs(one - two) <= 0.02 + 0.2 * abs(two) for one, two in pairs)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]
