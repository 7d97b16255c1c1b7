"""Writes the Markdown of every page beside its HTML, and `llms.txt`, an index of it for language models.

`llms-full.txt` has all pages in one file. See https://llmstxt.org for the format. A reference to a name becomes the
name's signature and docstring, and an included file its text, so that each file can be read by itself.
"""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = re.compile(r"^::: (\S+)\n(?: +\S.*\n)*", re.MULTILINE)
INCLUDED = re.compile(r'^( *)--8<-- "([^":]+)(?::(\d+):)?"$', re.MULTILINE)
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^# (.*)$", re.MULTILINE)

pages: dict[str, str] = {}  # the Markdown of each page, by the path of its source


def found(path: str) -> Any:
    """The object with this name.

    >>> found("decoupled.FTPL").__name__
    'FTPL'
    """
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):  # a function may be called like its module
        try:
            thing: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise ImportError(f"{path} cannot be imported")


def described(path: str, inherited: bool = False) -> str:
    """A name with its signature and its docstring, and those of its methods."""
    thing = found(path)
    if (
        not inspect.isclass(thing)
        and not inspect.isroutine(thing)
        and not hasattr(thing, "__wrapped__")
    ):
        return assigned(path)
    parts = [f"## `{path}{signature(thing)}`\n\n{inspect.getdoc(thing) or ''}\n"]
    if inspect.isclass(thing):
        parts += [
            f"### `{thing.__name__}.{name}`\n\n{text}\n" for name, text in members(thing, inherited)
        ]
    return "\n".join(parts)


def members(thing: type, inherited: bool = False) -> Iterator[tuple[str, str]]:
    """The public methods and properties of a class that have docstrings, with their signatures.

    >>> from decoupled import Budget
    >>> [name for name, _ in members(Budget) if "cost" in name]
    ['cost_of(self, arm: str | int) -> float']
    """
    parents = thing.__mro__ if inherited else [thing]
    names = dict.fromkeys(name for parent in reversed(parents) for name in vars(parent))
    for name in names:
        member = inspect.getattr_static(thing, name)
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            arguments = "" if isinstance(member, property) else signature(getattr(thing, name))
            yield f"{name}{arguments}", inspect.getdoc(function) or ""


def signature(thing: Any) -> str:
    """The arguments as they are written, without the addresses of functions that are defaults."""
    try:
        return re.sub(r"<function \S+ at \w+>", "...", str(inspect.signature(thing)))
    except (TypeError, ValueError):
        return ""


def assigned(path: str) -> str:
    """The name of a type with its value and the docstring that follows it.

    >>> print(assigned("decoupled.decision.Arm").rstrip())
    ## `decoupled.decision.Arm = str | int`
    <BLANKLINE>
    The name of an arm.
    """
    module, _, name = path.rpartition(".")
    body = ast.parse(inspect.getsource(importlib.import_module(module))).body
    for statement, follower in pairwise(body):
        match statement, follower:
            case (
                (
                    ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
                    | ast.Assign(targets=[ast.Name(id=target)], value=value)
                ),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if target == name:
                return f"## `{path} = {ast.unparse(value)}`\n\n{text}\n"
    for statement in body:  # or the name comes from another module
        if isinstance(statement, ast.ImportFrom) and name in {
            each.asname or each.name for each in statement.names
        }:
            source = "." * statement.level + (statement.module or "")
            package = module.rpartition(".")[0] if statement.level else None
            text = assigned(f"{importlib.util.resolve_name(source, package)}.{name}")
            return text.replace(text[4 : text.index(" = ")], path, 1)
    raise LookupError(f"{path} is not assigned with a docstring")


def included(match: re.Match[str]) -> str:
    """The text of a file, or from a line of it on, indented like the line that includes it."""
    lines = (ROOT / match[2]).read_text().splitlines()[int(match[3] or 1) - 1 :]
    return "\n".join(f"{match[1]}{line}".rstrip() for line in lines)


def complete(markdown: str) -> str:
    """The Markdown of a page with all that the site adds to it."""
    return INCLUDED.sub(included, REFERENCE.sub(referred, markdown))


def referred(match: re.Match[str]) -> str:
    """What a reference to a name stands for."""
    return described(match[1], "inherited_members: true" in match[0])


def summary(markdown: str) -> str:
    r"""The first sentence of a page, as plain text.

    >>> summary("# Title\n\n![A picture](a.png)\n\nA **learner** [decides](b.md). It learns.")
    'A learner decides.'
    """
    title = HEADING.search(markdown)
    rest = FENCE.sub("", markdown[title.end() if title else 0 :])
    prose = [part for part in rest.split("\n\n") if re.match(r"[\w`*\[\"]", part.strip())]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose[0].split())) if prose else ""
    return re.split(r"(?<=[.!?])\s", text.replace("**", ""))[0]


def index(title: str, about: str, sections: Iterator[tuple[str, list[Any]]]) -> str:
    """The text of `llms.txt`: what the project is, and a line for each page."""
    parts = [f"# {title}\n\n> {about}\n"]
    for name, section in sections:
        lines = [
            f"- [{page.title}]({page.file.src_uri}): {summary(pages[page.file.src_uri])}".rstrip(
                ": "
            )
            for page in section
        ]
        parts.append(f"## {name}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def sections_of(nav: Any) -> Iterator[tuple[str, list[Any]]]:
    """The sections of the site, each with its pages."""
    for item in nav.items:
        if item.is_section:
            yield item.title, [page for page in nav.pages if item in page.ancestors]
        else:
            yield "Start", [item]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page, after the lists are filled in: keep the text."""
    pages[page.file.src_uri] = complete(FRONT_MATTER.sub("", markdown))
    return markdown


def on_env(env: Any, *, config: Any, files: Any) -> Any:
    """Called by MkDocs once all pages are read: write the files."""
    folder = Path(config["site_dir"])
    for uri, text in pages.items():
        target = folder / uri
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    sections = list(sections_of(config["_nav"]))
    order = [page.file.src_uri for _, section in sections for page in section]
    about = config["site_description"]
    (folder / "llms.txt").write_text(index(config["site_name"], about, iter(sections)))
    (folder / "llms-full.txt").write_text("\n\n".join(pages[uri] for uri in order))
    return env


def on_nav(nav: Any, *, config: Any, files: Any) -> Any:
    """Called by MkDocs with the navigation, which `on_env` does not get."""
    config["_nav"] = nav
    return nav
