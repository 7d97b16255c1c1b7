"""The reference explains every parameter: Griffe reads the package here with the options of the site."""

import re
from collections.abc import Iterator

from support.api_pages import VARIADIC, Shown, shown
from support.pages import ROOT

# Names for packages built on this one: their docstrings are for those who read the code.
FOR_USERS = tuple(each for each in shown() if each.page != "building-on")


def calls() -> list[Shown]:
    """`AsyncClient` takes what `Client` takes, which is written there."""
    return [each for each in FOR_USERS if each.parameters and not each.path.endswith(".AsyncClient")]


def problems_of(call: Shown) -> Iterator[str]:
    """What is wrong with the table of a call."""
    wanted = [each.name for each in call.parameters]
    rows = call.rows("parameters")
    if not rows and call.thing.is_class:  # fields, which may be followed by properties
        rows = dict(list(call.rows("attributes").items())[: len(wanted)])
    if list(rows) != wanted:
        yield f"{call.path}: has the parameters {wanted}, and its table {list(rows)}"
    yield from (f"{call.path}: {name} has no meaning" for name, text in rows.items() if not text.strip())
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
    methods = re.findall(r"^  (?:async )?([a-z]\w*)(?:<.*?>)?\((.*)\): Promise<.*\{$", body, re.MULTILINE)
    calls = {(name, *re.findall(r"(?:^|, )(\w+)(?=:| =)", taken)) for name, taken in methods}
    table = re.findall(r"^\| `(\w+)\((.*?)\)` \|", page, re.MULTILINE)
    assert len(calls) > 20
    assert {(name, *filter(None, taken.split(", "))) for name, taken in table} == calls
    options = source[source.index("export interface ClientOptions") :].partition("\n}\n")[0]
    names = re.findall(r"^  (\w+)\?:", options, re.MULTILINE)
    assert names == re.findall(
        r"^\| `(\w+)` \|", page[page.index("| option |") :].partition("\n\n")[0], re.MULTILINE
    )
