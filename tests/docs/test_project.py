"""Facts stated in several files of the project: versions, the supported Pythons, the paper to cite."""

import json
import re
import tomllib
from importlib import import_module
from pkgutil import walk_packages

import pytest
import yaml

import decoupled as dc
import decoupled_lab
import decoupled_serve
from decoupled.learner import saving
from decoupled.simulation import results
from decoupled_lab import paper
from decoupled_lab.paper.base import PaperExperiment
from support.pages import PAGES, ROOT

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_supported_pythons_are_the_same_everywhere() -> None:
    project = tomllib.loads(text("core/pyproject.toml"))["project"]
    prefix = "Programming Language :: Python :: 3."
    named = [
        line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)
    ]
    assert tuple(f"3.{minor}" for minor in named) == PYTHONS
    end = int(PYTHONS[-1].partition(".")[2]) + 1
    assert project["requires-python"] == f">={PYTHONS[0]},<3.{end}"
    assert f"not ({PYTHONS[0].replace('.', ', ')}) <= sys.version_info[:2] < (3, {end})" in text(
        "Makefile"
    )
    assert f"needs Python {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]};" in text("Makefile")
    matrix = re.findall(r"^ *python: \[(.*)\]$", text(".github/workflows/ci.yml"), re.MULTILINE)
    assert matrix == [", ".join(f'"{version}"' for version in PYTHONS)]
    ranges = [
        found
        for page in PAGES
        for found in re.findall(r"Python (3\.\d+ to 3\.\d+)", page.read_text())
    ]
    assert len(ranges) >= 3
    assert set(ranges) == {f"{PYTHONS[0]} to {PYTHONS[-1]}"}


def test_actions_and_containers_of_a_release_are_pinned() -> None:
    for workflow in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        used = re.findall(r"uses: (.*)", workflow.read_text())
        assert used
        assert [
            each
            for each in used
            if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)
        ] == []
    images = re.findall(r" image: (.*)", text(".github/workflows/release.yml"))
    assert len(images) == 2
    assert [
        each for each in images if not re.fullmatch(r"\S+@sha256:[0-9a-f]{64} # \S+", each)
    ] == []


def test_the_changelog_the_citation_and_the_page_on_versioning_agree_with_the_release() -> None:
    headings = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    released = RELEASE.findall(text("CHANGELOG.md"))
    assert len(released) == len(headings) - (headings[0] == "[Unreleased]"), "## [version] - date"
    # Between two releases the version is that of the next, with .dev0.
    assert (".dev" in dc.__version__) == (headings[0] == "[Unreleased]")
    assert ".dev" in dc.__version__ or dc.__version__ == released[0][0]
    released = RELEASE.findall(text("CHANGELOG.md"))[0]
    cited, archived = yaml.safe_load(text("CITATION.cff")), json.loads(text(".zenodo.json"))
    assert (str(cited["version"]), str(cited["date-released"])) == released
    assert (archived["version"], archived["publication_date"]) == released
    same = {
        "title": "title",
        "abstract": "description",
        "license": "license",
        "keywords": "keywords",
    }
    for cff, zenodo in (*same.items(), ("authors", "creators")):
        assert archived[zenodo] == cited[cff], zenodo
    assert archived["upload_type"] == cited["type"] == "software"
    assert [cited["references"][0]["title"] in each for each in archived["references"]] == [True]
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", text("docs/versioning.md"), re.MULTILINE
    )
    assert dict(rows) == {
        "learner's state": str(saving.VERSION),
        "results, netCDF": str(results.VERSION),
    }


def test_the_other_packages_the_client_and_the_deployment_have_the_version_of_core() -> None:
    for package in (decoupled_serve, decoupled_lab):
        assert package.__version__ == dc.__version__
    pinned = [
        version
        for package in ("core", "serve", "lab")
        for version in re.findall(
            r'"decoupled-bandits[^"]*==([^"]*)"', text(f"{package}/pyproject.toml")
        )
    ]
    assert len(pinned) >= 8
    assert set(pinned) == {dc.__version__}
    release = dc.__version__.partition(".dev")[0]
    client = release if release == dc.__version__ else f"{release}-dev.0"
    locked = json.loads(text("clients/typescript/package-lock.json"))
    assert json.loads(text("clients/typescript/package.json"))["version"] == client
    assert (locked["version"], locked["packages"][""]["version"]) == (client, client)
    images = [text(f"deploy/kubernetes/{each}/kustomization.yaml") for each in ("base", "migrate")]
    assert [yaml.safe_load(each)["images"][0]["newTag"] for each in images] == [release, release]
    chart, values = (
        yaml.safe_load(text(f"deploy/helm/decoupled/{each}.yaml")) for each in ("Chart", "values")
    )
    assert (chart["version"], chart["appVersion"], values["image"]["tag"]) == (
        release,
        release,
        release,
    )


def test_every_experiment_is_on_the_list() -> None:
    for module in walk_packages(paper.__path__, f"{paper.__name__}."):
        import_module(module.name)

    def last(kind: type[PaperExperiment]) -> set[str]:
        below = kind.__subclasses__()
        return (
            {f"{kind.__module__}.{kind.__name__}"} if not below else set().union(*map(last, below))
        )

    defined = {each for each in last(PaperExperiment) if each.startswith("decoupled_lab.")}
    assert defined == {f"{paper.__name__}.{each.where}" for each in paper.EXPERIMENTS.values()}


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_paths_on_a_page_for_contributors_exist(page: str) -> None:
    named = set(re.findall(r"`((?:core|serve|lab|tests|docs|clients)/[\w./]+)`", text(page)))
    assert len(named) > 10
    # CONTRIBUTING.md has a policy as an example.
    assert [
        path for path in sorted(named) if not (ROOT / path).exists() and "inverse_gap" not in path
    ] == []


def test_what_make_run_installs_is_locked() -> None:
    """`make run` installs what `requirements/run.txt` names, and nothing that it leaves out."""
    core, lab = (
        tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"]
        for name in ("core", "lab")
    )
    asked = [each for each in lab["dependencies"] if not each.startswith("decoupled")]
    for extra in re.findall(r"\[(.*)\]", lab["dependencies"][0])[0].split(","):
        asked += core["optional-dependencies"][extra]
    locked = re.findall(r"(?m)^([\w.-]+)==", (ROOT / "requirements" / "run.txt").read_text())
    assert {re.split(r"[\[<>=!~; ]", each)[0].lower() for each in asked} <= set(locked)
