"""Digests of the sources of the machine code; code with other digests is stale."""

import ast
import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ("kernels", "policies", "environments")  # the folders whose machine code other folders use


@cache
def source_digest(*folders: str) -> str:
    """A digest of the source files in these folders of the package, or in the whole package."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders or (".",) for path in (ROOT / folder).rglob("*.py")):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def code_digest(*folders: str) -> str:
    """The same without docstrings, comments and line numbers, none of which is compiled.

    It parses every file, which takes a moment: ask only if `source_digest` differs. It depends on the version of
    Python as well.
    """
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        code = without_docstrings(path.read_text("utf-8"))
        digest.update(f"{path.relative_to(ROOT)} {code}".encode())
    return digest.hexdigest()[:16]


def without_docstrings(source: str) -> str:
    r"""The syntax tree of a file as text, without its docstrings.

    >>> without_docstrings("x = 1  # one") == without_docstrings("\n\nx = 1")
    True
    """
    return ast.dump(_Undocumented().visit(ast.parse(source)))


class _Undocumented(ast.NodeTransformer):
    """Drops every statement that is a string alone: it does nothing."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        value = node.value
        return None if isinstance(value, ast.Constant) and isinstance(value.value, str) else node
