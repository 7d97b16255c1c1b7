"""Shows what is written about the methods of `Client` with those of `AsyncClient`, as `help` does."""

from typing import Any

from griffe import Extension, Module

from decoupled.service.client.documented import with_sections

CLIENTS = "service.client.aio.AsyncClient", "service.client.sync.Client"


class SharedDocstrings(Extension):
    """Does what the decorator `documented_by` does when the package is imported."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Complete the docstrings once all files of the package are read."""
        if pkg.path != "decoupled":
            return
        completed, source = (pkg[path] for path in CLIENTS)
        pairs = [(completed, source)]
        pairs += [
            (each, source[name]) for name, each in completed.functions.items() if name in source.members
        ]
        for each, twin in pairs:
            if each.docstring and twin.docstring:
                each.docstring.value = with_sections(each.docstring.value, twin.docstring.value)
