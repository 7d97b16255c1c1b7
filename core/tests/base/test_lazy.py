"""The stub of a package as the list of what it exports."""

import pytest

from decoupled.base import lazy


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    texts: dict[str, str] = {}
    monkeypatch.setattr(lazy, "_stub", texts.__getitem__)
    return texts


def test_every_kind_of_line(stub: dict[str, str]) -> None:
    stub["a.b"] = (
        "# from .x import X as X\nfrom ..c.d import One as One\nfrom .e import Two as Two  # why\n"
    )
    stub["a"] = (
        "from . import f as f\nfrom .b import *\nfrom .g import Three as Three\n\n__version__: str\n"
    )
    assert lazy.exports("a.b") == {"One": "a.c.d", "Two": "a.b.e"}
    assert lazy.exports("a") == {"f": "a", "One": "a.b", "Two": "a.b", "Three": "a.g"}


def test_a_stub_that_was_not_installed_is_named() -> None:
    with pytest.raises(ImportError, match=r"__init__\.pyi: is missing.*install .* with its \.pyi files"):
        lazy.exports("decoupled.kernels")
