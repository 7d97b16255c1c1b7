"""The Dockerfile: what it copies exists, what it runs is the project's own, versions are pinned, and no secret is in it."""

import fnmatch
import re
import tomllib

import typer

from decoupled.cli.main import app
from decoupled_serve.options.definitions import CONFIG, SERVE
from support.dockerfile import copied, instructions, listed, stages
from support.pages import ROOT
from support.sandbox import USER

BUILD, FINAL = stages(ROOT / "Dockerfile")
VARIABLES = {option.variable for option in (CONFIG, *SERVE)}
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def test_it_has_two_stages_of_the_same_pinned_python() -> None:
    assert BUILD.name == "build"
    python = re.fullmatch(r"python:(\d+\.\d+\.\d+)-bookworm", BUILD.image)
    assert python, "pinned to a patch release"
    assert FINAL.image == f"python:{python[1]}-slim-bookworm"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    minor = python[1].rpartition(".")[0]
    assert f"Programming Language :: Python :: {minor}" in project["classifiers"]


def test_what_it_copies_exists_and_is_not_ignored() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert rules[0] == "*", "nothing is in the context but what is named"
    allowed = [line[1:].rstrip("/") for line in rules if line[0] == "!"]
    for text in BUILD.all("COPY"):
        stage, sources, _ = copied(text)
        assert stage is None
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source.rstrip("/").partition("/")[0] in allowed, source
    assert all((ROOT / each).exists() for each in allowed)
    refused = [line for line in rules[1:] if line[0] != "!"]
    assert any(fnmatch.fnmatch("core/src/decoupled/native/lib", each) for each in refused), (
        "built for one processor"
    )
    assert [copied(text) for text in FINAL.all("COPY")] == [("build", ["/venv"], "/venv")]


def test_every_package_is_installed_with_its_hash() -> None:
    for stage in (BUILD, FINAL):
        for text in stage.all("RUN"):
            for part in text.split("&&"):
                if " install " in f" {part} " and "pip" in part:
                    assert (
                        "--require-hashes -r requirements/" in part or "--no-index --no-deps /dist/" in part
                    )
                    files = re.findall(r"-r (\S+)", part)
                    assert all("--hash=sha256:" in (ROOT / file).read_text() for file in files)
                assert not re.search(r"\b(curl|wget|apt-get|git)\b", part)


def test_the_image_has_the_versions_that_are_tested() -> None:
    def versions(name: str) -> dict[str, str]:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        return dict(re.findall(r"^([\w.-]+(?:\[\w+\])?)==(\S+)", text, re.MULTILINE))

    tested = versions("dev")
    for name in ("image", "wheel"):
        for package, version in versions(name).items():
            assert tested[package] == version, package
    assert {"fastapi", "apsw", "psycopg", "opentelemetry-sdk"} <= versions("image").keys()
    assert not {"numba", "matplotlib", "scipy", "pandas"} & versions("image").keys()
    extras = re.search(r"^IMAGE_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert extras
    assert set(re.findall(r"--extra (\w+)", extras[1])) == {"otel", "postgres", "service"}


def test_it_runs_as_a_user_without_a_name_and_ends_in_order() -> None:
    assert FINAL.only("USER") == f"{USER}:{USER}"
    assert FINAL.only("STOPSIGNAL") == "SIGTERM"
    assert FINAL.only("VOLUME") == FINAL.only("WORKDIR") == "/data"
    assert f"-o {USER} -g {USER}" in FINAL.only("RUN")
    names = [name for name, _ in FINAL.steps]
    assert names.index("USER") > names.index("RUN"), "the folder is made by root"
    port = next(option.default for option in SERVE if option.name == "port")
    assert FINAL.only("EXPOSE") == str(port)


def test_it_runs_commands_of_the_project() -> None:
    assert listed(FINAL.only("ENTRYPOINT")) == ["decoupled"]
    [command] = listed(FINAL.only("CMD"))
    assert command in COMMANDS
    health = listed(FINAL.only("HEALTHCHECK").partition("CMD ")[2])
    assert health[0] == "decoupled"
    assert health[1] in COMMANDS


def test_it_sets_only_known_variables_and_no_secret() -> None:
    environment = FINAL.environment()
    assert {name for name in environment if name.startswith("DECOUPLED_")} <= VARIABLES
    assert not {"DECOUPLED_STORE", "DECOUPLED_STORE_FILE"} & environment.keys(), (
        "they would exclude each other"
    )
    assert environment["NUMBA_CACHE_DIR"].startswith("/tmp/"), (
        "the only folder besides /data that is writable"
    )
    whole = "\n".join(text for _, text in instructions(ROOT / "Dockerfile"))
    assert not re.search(r"dk_|password|postgresql://|secret|token", whole, re.IGNORECASE)
    assert not [name for name in environment if re.search("KEY|PASSWORD|TOKEN", name)]
