"""The promises of the versioning page about saved states."""

import json
import re

import pytest

import decoupled as dc
from decoupled.learner import saving as keeping
from decoupled.simulation import results
from support.pages import ROOT

# States of version 1, and the answers of their learners. States without additions were written before arms could
# be added and removed. Never rewrite them: if one becomes unreadable, the version must increase.
STATES = json.loads((ROOT / "tests" / "docs" / "states-1.json").read_text())


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_was_saved_is_read_by_every_later_release(name: str) -> None:
    kept = STATES[name]
    learner = dc.Learner.from_json(kept["state"])
    assert learner.round == kept["round"]
    assert [decision.id for decision in learner.pending] == kept["pending"]
    assert learner.estimates() == pytest.approx(kept["estimates"], rel=1e-12)
    assert learner.exploration_probabilities() == pytest.approx(kept["exploration"], rel=1e-9)
    learner.observe(kept["pending"][0], loss=1.0)
    assert learner.round == kept["round"] + 1


def test_the_page_names_the_versions_of_the_formats() -> None:
    page = (ROOT / "docs" / "versioning.md").read_text()
    versions = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", page, re.MULTILINE))
    assert versions == {"learner's state": str(keeping.VERSION), "results, netCDF": str(results.VERSION)}
