"""Tells the reference what `decoupled` exports: its stub takes names from another stub, which Griffe passes over."""

from typing import Any

from griffe import Alias, Extension, Module

from decoupled.base.lazy import exports


class Stubs(Extension):
    """Adds every exported name that is not there yet."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Complete a package once all of its files are read."""
        for name, home in exports("decoupled").items() if pkg.path == "decoupled" else ():
            if name not in pkg.members:
                pkg.set_member(name, Alias(name, f"{home}.{name}", parent=pkg))
