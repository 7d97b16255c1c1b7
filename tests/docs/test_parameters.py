"""The reference explains every parameter: Griffe reads the package here with the options of the site."""

import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import griffe
import yaml

from support.pages import ROOT

REFERENCE = re.compile(r"^::: (\S+)\n((?: +\S.*\n)*)", re.MULTILINE)
VARIADIC = (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword)


@dataclass(frozen=True)
class Shown:
    """A name on a page."""

    page: str
    path: str
    thing: Any  # an object of Griffe

    @property
    def parameters(self) -> list[griffe.Parameter]:
        """The parameters of a call; for a class, of its constructor. A `TypedDict` has none."""
        if self.thing.is_function:
            found = list(self.thing.parameters)
        elif self.thing.is_class and not self.is_typed_dict:
            own = self.thing.all_members.get("__init__")
            found = list(own.parameters) if own is not None and own.is_function else []
        else:
            found = []
        return [each for each in found if each.name not in ("self", "cls")]

    @property
    def is_typed_dict(self) -> bool:
        return self.thing.is_class and "TypedDict" in map(str, self.thing.bases)

    def rows(self, *kinds: str) -> dict[str, str]:
        """What the sections of these kinds say, by name."""
        if not self.thing.docstring:
            return {}
        sections = self.thing.docstring.parse(griffe.Parser.google, warnings=False)
        found = (row for each in sections if each.kind.value in kinds for row in each.value)
        return {row.name.lstrip("*"): row.description for row in found}

    @property
    def annotations(self) -> Iterator[Any]:
        """Every type that the page shows for it."""
        yield from (each.annotation for each in self.parameters)
        if self.thing.is_function:
            yield self.thing.returns
        elif self.thing.is_attribute:
            yield self.thing.annotation
        elif self.is_typed_dict:
            yield from (each.annotation for each in self.thing.attributes.values())


@cache
def options() -> dict[str, Any]:
    """The options of the site for the reference."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    [plugin] = [each["mkdocstrings"] for each in config["plugins"] if "mkdocstrings" in each]
    found: dict[str, Any] = plugin["handlers"]["python"]["options"]
    return found


@cache
def packages() -> Any:
    """The packages as Griffe reads them, with the extensions of the site."""
    extensions = griffe.load_extensions(*(str(ROOT / each) for each in options()["extensions"]))
    loader = griffe.GriffeLoader(
        search_paths=[ROOT / each / "src" for each in ("core", "serve", "lab")],
        extensions=extensions,
        docstring_parser=griffe.Parser.google,
    )
    for name in ("decoupled", "decoupled_serve", "decoupled_lab"):
        loader.load(name)
    loader.resolve_aliases(implicit=True)
    return loader.modules_collection


def pages() -> Iterator[tuple[str, str]]:
    """Every page of the reference and its Markdown, lists filled in."""
    fill_in = runpy.run_path(str(ROOT / "docs/tools/lists.py"))["on_page_markdown"]
    for file in sorted((ROOT / "docs/api").glob("*.md")):
        yield file.stem, fill_in(file.read_text()) + "\n"


@cache
def shown() -> tuple[Shown, ...]:
    """Every name on the pages, with the members that are shown."""
    found = []
    for page, text in pages():
        for path, block in REFERENCE.findall(text):
            given = yaml.safe_load(block)["options"] if block else {}
            thing = packages()[path]
            thing = thing.final_target if thing.is_alias else thing
            found.append(Shown(page, path, thing))
            found += members(page, path, thing, {**options(), **given})
    return tuple(found)


def members(page: str, path: str, thing: Any, given: dict[str, Any]) -> Iterator[Shown]:
    """The members of a class that a page shows: those with a docstring that no filter leaves out."""
    if not thing.is_class or given.get("members") is False:
        return
    inherited = given.get("inherited_members", False)
    names = thing.members.keys() | (
        thing.all_members.keys() if inherited is True else set(inherited or ())
    )
    hidden = [each.removeprefix("!") for each in given["filters"]]
    for name in sorted(names):
        member = thing.all_members[name]
        if member.docstring and not any(re.search(each, name) for each in hidden):
            yield Shown(page, f"{path}.{name}", member.final_target if member.is_alias else member)


# Names for packages built on this one: their docstrings are for those who read the code.
FOR_USERS = tuple(each for each in shown() if each.page != "building-on")


def calls() -> list[Shown]:
    """`AsyncClient` takes what `Client` takes, which is written there."""
    return [
        each for each in FOR_USERS if each.parameters and not each.path.endswith(".AsyncClient")
    ]


def problems_of(call: Shown) -> Iterator[str]:
    """What is wrong with the table of a call."""
    wanted = [each.name for each in call.parameters]
    rows = call.rows("parameters")
    if not rows and call.thing.is_class:  # fields, which may be followed by properties
        rows = dict(list(call.rows("attributes").items())[: len(wanted)])
    if list(rows) != wanted:
        yield f"{call.path}: has the parameters {wanted}, and its table {list(rows)}"
    yield from (
        f"{call.path}: {name} has no meaning" for name, text in rows.items() if not text.strip()
    )
    for each in call.parameters:
        if each.annotation is None:
            yield f"{call.path}: {each.name} has no type"
        if each.kind in VARIADIC and "Any" in str(each.annotation):
            yield f"{call.path}: {each.name} takes anything; name the arguments and their types"


def test_every_parameter_and_every_key_of_a_typed_dict_is_explained() -> None:
    assert len(calls()) > 200
    assert [problem for call in calls() for problem in problems_of(call)] == []
    kinds = [each for each in shown() if each.is_typed_dict]
    assert len(kinds) >= 6
    for kind in kinds:
        rows = kind.rows("attributes")
        assert list(rows) == list(kind.thing.attributes), kind.path
        assert all(text.strip() for text in rows.values()), kind.path


def test_the_tables_of_the_typescript_client_are_complete() -> None:
    source = (ROOT / "clients/typescript/src/client.ts").read_text()
    page = (ROOT / "clients/typescript/README.md").read_text()
    body = source[source.index("export class Client ") :].partition("\n}\n")[0]
    methods = re.findall(
        r"^  (?:async )?([a-z]\w*)(?:<.*?>)?\((.*)\): Promise<.*\{$", body, re.MULTILINE
    )
    calls = {(name, *re.findall(r"(?:^|, )(\w+)(?=:| =)", taken)) for name, taken in methods}
    table = re.findall(r"^\| `(\w+)\((.*?)\)` \|", page, re.MULTILINE)
    assert len(calls) > 20
    assert {(name, *filter(None, taken.split(", "))) for name, taken in table} == calls
    options = source[source.index("export interface ClientOptions") :].partition("\n}\n")[0]
    names = re.findall(r"^  (\w+)\?:", options, re.MULTILINE)
    assert names == re.findall(
        r"^\| `(\w+)` \|", page[page.index("| option |") :].partition("\n\n")[0], re.MULTILINE
    )
