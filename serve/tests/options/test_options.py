"""Options by flag, variable and file: what wins, what is refused, and what is shown."""

import itertools
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decoupled.client import Client
from decoupled.errors import ParameterError
from decoupled_serve.mirror.config import CopyConfig, ExperimentConfig, MirrorConfig
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.options.definitions import CONFIG, MIRROR, OTHER_VARIABLES, SERVE, Option
from decoupled_serve.options.kinds import shown_store
from decoupled_serve.options.sources import read_file, resolved, serve_file, unknown_variables
from decoupled_serve.service.http.admission import Limits
from decoupled_serve.service.http.server import Serving
from support.command_line import run, said
from support.mirrors.running import ARMS

# A text for each kind of option, and what it means.
TEXTS: dict[str, tuple[str, Any]] = {
    "": ("off", False), "TEXT": ("::1", "::1"), "NAME": ("b", "b"), "PATH": ("a", Path("a")),
    "PATH|postgresql://...": ("postgresql://u:p@h/d", "postgresql://u:p@h/d"), "URL": ("https://b", "https://b"),
    "INTEGER": ("2048", 2048), "NUMBER": ("1", 1.0), "text|json": ("json", "json"),
    "HOST:PORT": ("[::1]:81", ("::1", 81)), "HOST:PORT|off": ("127.0.0.1:80", ("127.0.0.1", 80)),
}  # fmt: skip
OPTIONS = [
    pytest.param(option, id=f"{group}-{option.name}")
    for group, some in (("serve", SERVE), ("mirror", MIRROR))
    for option in some
]


def written(option: Option, value: object) -> str:
    """A file that sets one option."""
    table, _, key = option.key.rpartition(".")
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else f"{value!r}"
    return f"[{table}]\n{key} = {text}\n" if table else f"{key} = {text}\n"


def file_of(folder: Path, text: str) -> Path:
    path = folder / "some.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("option", OPTIONS)
def test_a_flag_beats_a_variable_beats_the_file_beats_the_default(
    option: Option, tmp_path: Path
) -> None:
    text, meant = TEXTS[option.kind.metavar]
    file = read_file(file_of(tmp_path, written(option, option.kind.parse(text))))
    only, flags = (replace(option, fills=None),), {option.identifier: text}

    def value(flags: dict[str, Any], environ: dict[str, str], *files: Any) -> tuple[Any, str]:
        held = resolved(only, flags, environ, *files).held[option.name]
        return held.value, held.source

    assert value({}, {}) == (option.default, "default")
    assert value({}, {}, file) == (option.kind.locate(meant, tmp_path), "some.toml")
    assert value({}, {option.variable: text}, file) == (meant, option.variable)
    assert value(flags, {option.variable: "not one"}, file) == (meant, option.flag)
    assert value({}, {option.variable: ""}) == (option.default, "default"), (
        "empty counts as not set"
    )


@pytest.mark.parametrize(
    ("flags", "environ", "text", "words"),
    [
        ({"port": "70000"}, {}, "", "--port = 70000: must be a whole number from 0 to 65535"),
        ({}, {"DECOUPLED_PORT": "http"}, "", "DECOUPLED_PORT = 'http': must be a whole number"),
        ({}, {"DECOUPLED_PORT": "tcp://10.0.0.1:80"}, "", "set enableServiceLinks: false"),
        ({}, {"DECOUPLED_RATE": "nan"}, "", "DECOUPLED_RATE = nan: must be a number from 0 on"),
        ({}, {"DECOUPLED_ACCESS_LOG": "maybe"}, "", "DECOUPLED_ACCESS_LOG = 'maybe': must be true or false"),
        ({}, {}, "[serve]\nport = '80'\n", "some.toml: serve.port = '80': must be a whole number"),
        ({}, {}, "[serve]\ndrain = 0\n", "some.toml: serve.drain = 0: must be a whole number from 1 on"),
        ({}, {}, "[serve]\nprot = 80\n", "some.toml: serve.prot: is not a key here; did you mean 'port'?"),
        ({}, {}, "[server]\nport = 80\n", "some.toml: server: is not a table here; did you mean 'serve'?"),
        ({}, {}, "serve = 1\n", "some.toml: serve: must be a table"),
        ({}, {}, "port\n", "some.toml: is not TOML"),
        ({}, {"DECOUPLED_STORE_FILE": "/none/such"}, "", "DECOUPLED_STORE_FILE = '/none/such': cannot be read"),
        ({}, {"DECOUPLED_STORE_FILE": "/a", "DECOUPLED_STORE": "b"}, "", "DECOUPLED_STORE, DECOUPLED_STORE_FILE: both are given"),
        ({}, {}, "[serve]\nstore = 'a'\nstore_file = 'b'\n", "some.toml: store, serve.store_file: both are given"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_an_error_that_names_its_source(
    flags: dict[str, Any], environ: dict[str, str], text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError) as caught:
        resolved(SERVE, flags, environ, serve_file(file_of(tmp_path, text)))
    assert words in str(caught.value)
    assert ";" in str(caught.value), "a remedy follows"


def test_the_address_of_the_store_can_be_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "address"
    secret.write_text("postgresql://shop:secret@db/shop\n")
    settings = resolved(SERVE, {}, {"DECOUPLED_STORE_FILE": str(secret)})
    assert settings["store"] == "postgresql://shop:secret@db/shop"
    assert settings.source("store") == f"DECOUPLED_STORE_FILE ({secret})"
    config = file_of(tmp_path, "[serve]\nstore_file = 'address'\n")
    assert (
        resolved(SERVE, {}, {}, serve_file(config))["store"] == "postgresql://shop:secret@db/shop"
    )
    assert (
        resolved(SERVE, {"store": "a.db"}, {"DECOUPLED_STORE_FILE": str(secret)})["store"] == "a.db"
    )
    secret.write_text("\n")
    with pytest.raises(ParameterError, match="must contain one line"):
        resolved(SERVE, {}, {"DECOUPLED_STORE_FILE": str(secret)})


def test_an_unknown_variable_is_a_warning_and_what_is_plain_in_an_address_is_shown() -> None:
    known = {option.variable for option in (CONFIG, *SERVE, *MIRROR)} | set(OTHER_VARIABLES)
    assert not list(unknown_variables(dict.fromkeys(known, "x")))
    [warning] = unknown_variables({"DECOUPLED_TLS_CERT": "a.pem", "PATH": "/bin"})
    assert warning.startswith("DECOUPLED_TLS_CERT: ")
    assert "did you mean 'DECOUPLED_TLS_CERTIFICATE'?" in warning
    assert shown_store("data/me@corp/password.db") == "data/me@corp/password.db"
    assert shown_store("postgresql:///decisions?host=/run") == "postgresql:///decisions"
    for server in ("db.internal", "shop@db:5433", "me%40corp@[::1]:5433,db2", "shop@%2Frun"):
        user, at, host = server.rpartition("@")
        address = f"postgres://{user}{at and ':se?c:ret@'}{host}/d-1?x=y"
        assert shown_store(address) == f"postgresql://{server}/d-1"


def test_the_defaults_are_those_of_the_code() -> None:
    serving, limits = Serving("decoupled.db"), Limits()
    expected = vars(serving) | {
        "body_limit": limits.body,
        "rate": limits.rate,
        "burst": limits.burst,
    }
    expected |= {"replay_limit": limits.replay, "delete_after": serving.delete_after / 86_400.0}
    del expected["limits"]
    assert {option.identifier: option.default for option in SERVE if not option.fills} == expected
    of_mirror = {name: field.default for name, field in MirrorConfig.model_fields.items()}
    of_mirror |= {"experiment.name": ExperimentConfig().name, "mirror.share": CopyConfig().share}
    for option in MIRROR:
        if option.name not in ("store-file", "key-file"):
            assert option.default == of_mirror[option.key], option.name


def test_every_option_reaches_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Serving] = []
    monkeypatch.setattr("decoupled_serve.service.http.server.run", ran.append)
    given = [
        each
        for option in SERVE
        if option.kind.metavar and not option.fills
        for each in (option.flag, TEXTS[option.kind.metavar][0])
    ]
    said("serve", *given, "--access-log", "--otel")
    [serving] = ran
    assert all(each is True for each in (serving.access_log, serving.otel))
    assert serving.limits == Limits(body=2048, rate=1.0, burst=1.0, replay=2048)
    assert serving.delete_after == 86_400.0
    others = {
        name: each for name, each in vars(serving).items() if name not in ("limits", "delete_after")
    }
    plain = vars(Serving("decoupled.db"))
    assert not [
        name for name, each in others.items() if each == plain[name] and name != "log_format"
    ]


@pytest.mark.parametrize(("name", "options"), [("serve", SERVE), ("mirror", MIRROR)])
def test_every_option_has_a_flag_and_a_variable(
    name: str, options: tuple[Option, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [
        each for each in options if each.fills is None and each.name not in ("service", "key-file")
    ]
    file = [str(file_of(tmp_path, ARMS))] if name == "mirror" else []

    def sources(*flags: str) -> dict[str, str]:
        shown = said("config", name, *file, *flags)
        found = {line.split()[0]: line.split()[-1] for line in shown.splitlines()}
        return {each.name: found[each.name] for each in some}

    words = [
        [each.flag, *([TEXTS[each.kind.metavar][0]] if each.kind.metavar else [])] for each in some
    ]
    assert sources(*itertools.chain(*words)) == {each.name: each.flag for each in some}
    for each in some:
        monkeypatch.setenv(each.variable, TEXTS[each.kind.metavar][0])
    assert sources() == {each.name: each.variable for each in some}
    missing = run(
        "config", name, *(["--config"] if name == "serve" else []), tmp_path / "nope.toml"
    )
    assert missing.exit_code != 0
    assert "nope.toml: does not exist; check the path" in missing.output


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://shop:{}@db.internal:5433/decisions",
        "postgres://shop:{}@[::1],db.internal/decisions?connect_timeout=1",
        "postgresql://:{}@/decisions",
        "postgresql://shop@db/decisions?x=1&password={}",
        "postgresql://db?sslpassword={}",
        "postgresql+psycopg://shop:{}@db/decisions",
        "/data/POSTGRESQL:/shop:{}@db/decisions",
        "host=db dbname=decisions password = '{}'",
    ],
)
def test_no_part_of_a_password_is_shown(address: str) -> None:
    for one, other in itertools.product(string.printable.replace("7", ""), repeat=2):
        shown = shown_store(address.format(f"77{one}7{other}77"))
        assert "7" not in shown, (one, other, shown)


def test_what_holds_is_printed_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = file_of(tmp_path, "[serve]\nrate = 5\nbackups = 'copies'\n")
    monkeypatch.setenv("DECOUPLED_CONFIG", str(config))
    monkeypatch.setenv("DECOUPLED_STORE", "postgresql://shop:secret@db:5433/shop?password=secret")
    monkeypatch.setenv("DECOUPLED_BURTS", "7")
    shown = run("config", "serve", "--port", "9000", "--access-log")
    assert shown.exit_code == 0, shown.output
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert rows["store"] == ["postgresql://shop@db:5433/shop", "DECOUPLED_STORE"]
    assert rows["port"] == ["9000", "--port"]
    assert rows["access-log"] == ["on", "--access-log"]
    assert rows["rate"] == ["5", "some.toml"]
    assert rows["backups"] == [str(tmp_path / "copies"), "some.toml"], "relative to the file"
    assert rows["burst"] == ["20000", "default"]
    assert rows.keys() == {option.name for option in SERVE}
    assert "secret" not in shown.output
    assert "did you mean 'DECOUPLED_BURST'?" in shown.stderr


def test_a_mirrors_options_print_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECOUPLED_LISTEN", "0.0.0.0:80")
    tables = "listen = '127.0.0.1:1'\n[mirror]\nshare = 0.5\nqueue = 7\n"
    file = file_of(tmp_path, f"{tables}{ARMS}headers = {{ X-Key = 'secret' }}\n")
    shown = run("config", "mirror", file, "--share", "0.25", "--console", "off")
    assert shown.exit_code == 0, shown.output
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert rows["listen"] == ["0.0.0.0:80", "DECOUPLED_LISTEN"]
    assert rows["share"] == ["0.25", "--share"]
    assert rows["console"] == ["off", "--console"]
    assert rows["mirror.queue"] == ["7", "some.toml"]
    assert rows["arm[1].headers.X-Key"] == ["***", "some.toml"]
    assert "mirror.share" not in rows
    assert "secret" not in shown.output


def test_mirrors_take_flags_variables_and_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "judge-key").write_text("word\n")
    (tmp_path / "service-key").write_text("dk_example\n")
    headers = f'[loss.judge]\nurl = "http://judge"\nheaders = {{ X-Key = "Bearer ${{file:{tmp_path}/judge-key}}" }}\n'
    path = file_of(tmp_path, f"service = 'http://a'\nkey_file = 'service-key'\n{headers}{ARMS}")
    monkeypatch.setenv("DECOUPLED_EXPERIMENT", "others")
    monkeypatch.setenv("DECOUPLED_STATE_FOLDER", str(tmp_path / "state"))
    config = read_config(path)
    assert config.loss.judge is not None
    assert config.loss.judge.headers == {"X-Key": "Bearer word"}
    assert config.key == "dk_example"
    assert "dk_example" not in repr(config)
    assert config.file("outbox") == tmp_path / "state" / "others-outbox.jsonl"
    monkeypatch.setenv("DECOUPLED_STORE", "some.db")
    with pytest.raises(ParameterError, match=r"both are given \(DECOUPLED_STORE and some.toml\)"):
        read_config(path)
    path.write_text(ARMS)
    assert read_config(path).store == str(Path.cwd() / "some.db")
    monkeypatch.setenv("DECOUPLED_CONFIG", str(path))
    assert run("mirror", "--check", "--offline").exit_code == 0
    monkeypatch.delenv("DECOUPLED_CONFIG")
    missing = run("mirror", "--check")
    assert (missing.exit_code, "set DECOUPLED_CONFIG" in missing.output) == (2, True)
    path.write_text(f'{ARMS}headers = {{ X = "${{file:key}}" }}\n')
    with pytest.raises(ParameterError, match="must have an absolute path"):
        read_config(path)


def test_the_clients_key_can_be_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("dk_example\n")
    monkeypatch.delenv("DECOUPLED_KEY", raising=False)
    monkeypatch.setenv("DECOUPLED_KEY_FILE", str(tmp_path / "key"))
    with Client("http://127.0.0.1:1") as client:
        assert client._http.headers["Authorization"] == "Bearer dk_example"
    monkeypatch.setenv("DECOUPLED_KEY", "dk_other")
    with pytest.raises(ParameterError, match="DECOUPLED_KEY, DECOUPLED_KEY_FILE: both are set"):
        Client("http://127.0.0.1:1")


def test_other_commands_find_the_store_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = file_of(tmp_path, "[serve]\nstore = 'a.db'\nport = 9000\n")
    made = run("migrate", "--config", config)
    assert made.exit_code == 0, made.output
    assert "created" in made.output
    assert "nothing to do" in run("migrate", "--store", tmp_path / "a.db").output
    monkeypatch.setenv("DECOUPLED_CONFIG", str(config))
    assert run("keys", "add").exit_code == 0
    assert len(run("keys", "list").output.splitlines()) == 1
    assert run("doctor").exit_code == 0
    monkeypatch.setenv("DECOUPLED_STORE", str(tmp_path / "none.db"))
    assert run("doctor").exit_code == 1, "a variable comes before the file"
