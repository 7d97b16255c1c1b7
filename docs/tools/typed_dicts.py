"""Shows keyword arguments that a `TypedDict` describes as the parameters that they are.

A call with `**options: Unpack[DecideOptions]` has one row in its source, `**options: see DecideOptions`. The page
shows a row for each key instead, with its type and meaning. A hook says "optional" where such a key has no default of
its own.
"""

import re
from collections.abc import Iterator
from typing import Any

from griffe import Class, Docstring, Extension, Function, Module, Object, Parameter, ParameterKind, Parser

OPTIONAL = "..."  # the default of a key that may be left out
_CELL = re.compile(r"(<td>\s*)<code>(?:<span[^>]*>)?\.\.\.(?:</span>)?</code>(\s*</td>)")


class TypedDicts(Extension):
    """Replaces `**options: Unpack[...]` by the keys, in signatures and in docstrings."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Rewrite the functions once all files of the package are read."""
        for function in functions_in(pkg):
            found = next((each for each in function.parameters if is_unpacked(each)), None)
            if found is not None:
                expand(function, found, pkg.modules_collection[found.annotation.slice.canonical_path])


def functions_in(thing: Object) -> Iterator[Function]:
    """Every function and method that is defined there."""
    for member in thing.members.values():
        if member.is_alias:
            continue
        if member.is_function:
            yield member
        elif member.is_module or member.is_class:
            yield from functions_in(member)


def is_unpacked(parameter: Parameter) -> bool:
    """Whether a parameter is `**name: Unpack[...]`."""
    unpacked = getattr(parameter.annotation, "canonical_path", "") == "typing.Unpack"
    return parameter.kind is ParameterKind.var_keyword and unpacked


def expand(function: Function, parameter: Parameter, keys: Class) -> None:
    """Put the keys in the place of the parameter."""
    function.parameters._params.remove(parameter)
    for name, key in keys.attributes.items():
        function.parameters.add(Parameter(name, annotation=key.annotation, kind=KEYWORD, default=OPTIONAL))
    if function.docstring:
        row = re.compile(rf"^( *)\*\*{parameter.name}: .*\n?(?:\1 +.*\n?)*", re.MULTILINE)
        rows = "".join(f"\\g<1>{name}: {text}\n" for name, text in meanings(keys))
        function.docstring.value = row.sub(rows, function.docstring.value)


KEYWORD = ParameterKind.keyword_only


def meanings(keys: Class) -> Iterator[tuple[str, str]]:
    """Each key of a `TypedDict` with what its docstring says about it."""
    text = Docstring(keys.docstring.value, parent=keys) if keys.docstring else Docstring("")
    for section in text.parse(Parser.google):
        for row in section.value if section.kind.value == "attributes" else ():
            yield row.name, " ".join(row.description.split()).replace("\\", r"\\")


def on_post_page(output: str, /, **_: Any) -> str:
    """Called by MkDocs for every page: say what the dots mean."""
    return _CELL.sub(r"\1<em>optional</em>\2", output)
