"""The scripts of docs/tools, as modules."""

import importlib
import sys
from typing import Any

from support.pages import ROOT


def tool(name: str) -> Any:
    """A script of docs/tools, which imports others from its folder."""
    folder = str(ROOT / "docs" / "tools")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)
