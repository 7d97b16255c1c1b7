"""The versioning page and the formats."""

import re

from decoupled.learner import saving as keeping
from decoupled.simulation import results
from support.pages import ROOT


def test_the_page_names_the_versions_of_the_formats() -> None:
    page = (ROOT / "docs" / "versioning.md").read_text()
    versions = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", page, re.MULTILINE))
    assert versions == {"learner's state": str(keeping.VERSION), "results, netCDF": str(results.VERSION)}
