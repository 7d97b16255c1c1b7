"""Shows what every policy or every environment has once, in its base class."""

from collections.abc import Iterator
from typing import Any

from griffe import Class, Extension, Module, Object

BASES = "policies.base.Policy", "environments.base.Environment"


class Overrides(Extension):
    """Drops the docstrings of overrides, so that the pages leave them out."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Rewrite the classes once all files of the package are read."""
        if pkg.path != "decoupled":
            return
        bases = {pkg[path].path: pkg[path].all_members for path in BASES}
        for kind in classes_in(pkg):
            for base in kind.mro():
                for name in kind.members.keys() & bases.get(base.path, {}).keys():
                    kind.members[name].docstring = None


def classes_in(thing: Object) -> Iterator[Class]:
    """Every class that is defined there."""
    for member in thing.members.values():
        if member.is_alias:
            continue
        if member.is_class:
            yield member
        if member.is_class or member.is_module:
            yield from classes_in(member)
