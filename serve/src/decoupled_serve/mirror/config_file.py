"""Reads the TOML file of a mirror, says in words what it means, and writes one to start from.

An error names the key and the rule: `arm[1].timeout: Input should be greater than 0`.
"""

import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from decoupled.base import read_secret
from decoupled.errors import DecoupledError, ParameterError

from ..options.definitions import MIRROR
from ..options.kinds import STORE, shown, shown_store
from ..options.sources import FILE, OptionValues, read_file, resolved
from .config import NOT_ITS_OWN, FieldConfig, JudgeConfig, LossConfig, MirrorConfig, first_problem
from .finders import ContextFinder
from .judge_worker import function_named


def read_config(path: str | os.PathLike[str], settings: OptionValues | None = None) -> MirrorConfig:
    """Read and check a configuration. Variables come before the file, and so do flags, which are in `settings`.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "mirror.toml"
    >>> _ = file.write_text('''
    ... [[arm]]
    ... name = "stable"
    ... url = "http://127.0.0.1:9001"
    ... [[arm]]
    ... name = "next"
    ... url = "http://127.0.0.1:9002"
    ... ''')
    >>> config = read_config(file)
    >>> [arm.name for arm in config.arms], config.mirror.share, config.loss.status
    (['stable', 'next'], 0.05, 1.0)
    """
    file = read_file(Path(path))
    settings = settings or resolved(MIRROR, {}, file=file)
    options, held = {option.key for option in MIRROR}, _options(settings)
    try:
        if settings.given("store") and settings.given("service"):
            sources = f"{settings.source('store')} and {settings.source('service')}"
            remedy = "keep one, the store here or the address of a service"
            raise ParameterError(f"store, service: both are given ({sources}); {remedy}")
        tables = {key: value for key, value in file.values.items() if key not in options}
        for name in {"key", "folder"} & tables.keys():
            raise ParameterError(f"{name}: is not a key here; see key_file and state_folder")
        config = MirrorConfig.model_validate({**tables, **held, "folder": file.path.parent})
    except ValidationError as error:
        raise ParameterError(f"{file.path.name}: {first_problem(error)}") from None
    except DecoupledError as error:
        raise ParameterError(f"{file.path.name}: {error}") from None
    experiment = config.experiment.model_copy(update={"name": settings["experiment"]})
    # Whoever sends copies to a sink has chosen them already.
    share = 1.0 if config.sink and not settings.given("share") else settings["share"]
    mirror = config.mirror.model_copy(update={"share": share})
    return config.model_copy(update={"experiment": experiment, "mirror": mirror})


def _options(settings: OptionValues) -> dict[str, Any]:
    """What flags and variables can set, too."""
    found = {
        each.key: settings[each.name] for each in MIRROR if each.key in MirrorConfig.model_fields
    }
    store, key_file = settings.held["store"], settings["key-file"]
    # A path in a flag or a variable starts from the current folder, one in the file from that of the mirror.
    outside = store.rank > FILE
    found["store"] = (
        STORE.locate(store.value, Path.cwd()) if outside else str(store.raw or store.value)
    )
    found["key"] = None if key_file is None else read_secret(settings.source("key-file"), key_file)
    return found


def explained(config: MirrorConfig) -> str:
    """What a configuration means, without secrets. Raises the error that starting it would raise.

    >>> arms = [{"name": "a", "url": "http://a:80"}, {"name": "b", "url": "http://b:80"}]
    >>> print(explained(MirrorConfig.model_validate({"arm": arms})))
    listens on 127.0.0.1:8080, console on 127.0.0.1:8081
    decides with experiment 'mirror' in mirror.db
    arm 'a': http://a:80
    arm 'b': http://b:80
    mirrors 5% of: GET /*, HEAD /*, OPTIONS /*
    loss: status 1
    """
    mirror, listen, console = config.mirror, shown(config.listen), config.console
    judge = config.loss.judge
    if judge is not None and judge.python is not None:
        function_named(judge.python, config.folder, alone=judge.alone)
    ContextFinder(config)
    does, store = (
        "takes copies" if config.sink else "listens",
        config.service or shown_store(config.store),
    )
    lines = [
        f"{does} on {listen}, "
        + ("no console" if console is None else f"console on {shown(console)}"),
        f"decides with experiment {config.experiment.name!r} in {store}",
    ]
    for arm in config.arms:
        passed = (
            f", gets {', '.join(arm.pass_credentials)} of clients" if arm.pass_credentials else ""
        )
        added = f", adds {', '.join(arm.headers)}" if arm.headers else ""
        sets = f", sets {', '.join(arm.fields)} in JSON" if arm.fields else ""
        lines.append(f"arm {arm.name!r}: {arm.url}{added}{sets}{passed}")
    except_for = f"; never {', '.join(mirror.skip)}" if mirror.skip else ""
    lines.append(f"mirrors {100 * mirror.share:g}% of: {', '.join(mirror.repeat)}{except_for}")
    if config.sticky is not None:
        [(kind, place)] = config.sticky.model_dump(by_alias=True, exclude_none=True).items()
        lines.append(f"serves requests with the same {kind} {place!r} by the same arm")
    if config.context:
        lines.append(
            f"knows of a request: {', '.join(starmap(_shown_field, config.context.items()))}"
        )
    lines.append(f"loss: {_shown_loss(config.loss)}")
    if config.spending_limits:
        lines.append(_shown_money(config))
    if (labels := config.labels) is not None:
        by = (
            f"{labels.to}, kept for {labels.keep_days:g} days"
            if labels.to == "console"
            else labels.to
        )
        lines.append(f"labels: {100 * labels.share:g}% and the first {labels.first:,}, by {by}")
    return "\n".join(lines)


def _shown_money(config: MirrorConfig) -> str:
    """The limits of money that the mirror itself keeps, and what it sets aside for a copy."""
    limits = config.spending_limits
    parts = [f"at most {limits['total']:g} in all"] if "total" in limits else []
    if "allowance" in limits:
        amount, seconds = limits["allowance"]
        parts.append(f"at most {amount:g} in {seconds:g} s")
    judge = config.loss.judge
    judging = 0.0 if judge is None else judge.dearest
    dearest = max(arm.dearest for arm in config.arms)
    aside = f"{dearest:g} is set aside for a copy and {judging:g} for its judge until their prices are known"
    return f"budget: {' and '.join(parts)}, kept in {config.file('spent').name}; {aside}"


def doubts(config: MirrorConfig) -> list[str]:
    """What is allowed, and likely a mistake.

    >>> arms = [{"name": "a", "url": "http://a:80"}, {"name": "b", "url": "http://b:80"}]
    >>> [each.partition(":")[0] for each in doubts(MirrorConfig.model_validate({"arm": arms}))]
    ['arm.pass_credentials']
    >>> arms[0]["pass_credentials"] = ["Authorization"]
    >>> doubts(MirrorConfig.model_validate({"arm": arms}))
    []
    """
    known = [name.lower() for arm in config.arms for name in (*arm.pass_credentials, *arm.headers)]
    gets, found = "copy" if config.sink else "client", []
    if config.labels is not None and config.labels.redact is None:
        kept = "answers are kept or sent with all that is private in them"
        found.append(f"labels.redact: is not set, so {kept}")
    judge = config.loss.judge
    if config.spending_limits and judge is not None and not judge.dearest:
        found.append(
            "loss.judge: has neither ceiling nor cost, so the budget counts judging as free: set one if it is not"
        )
    if "authorization" not in known:
        found.append(
            "arm.pass_credentials: no arm gets the Authorization of clients, or has one of its own under headers; if the "
            f"arms ask for it, every {gets} gets 401: add pass_credentials to each arm"
        )
    return found


def _shown_field(name: str, field: FieldConfig) -> str:
    given = field.model_dump(by_alias=True, exclude_defaults=True, exclude={"type", "timeout"})
    [(place, where)] = given.items()
    return f"{name} ({field.type} of {place}{'' if where is True else f' {where!r}'})"


def _shown_loss(loss: LossConfig) -> str:
    parts = [f"status {loss.status:g}"] if loss.status else []
    for name in ("latency", "duration", "bytes", "cost"):
        term = getattr(loss, name)
        if term is not None:
            parts.append(f"{name} {term.weight:g} ({term.low:g} to {term.high:g})")
    if loss.judge is not None:
        model = "" if loss.judge.model is None else f"model {loss.judge.model} at "
        parts.append(
            f"judge {loss.judge.weight:g} ({loss.judge.python or f'{model}{loss.judge.url}'})"
        )
    return ", ".join(parts)


def file_keys(path: Path) -> list[tuple[str, str, str]]:
    """The keys of a file that no flag can set: their names, their values without secrets, and the file."""
    file, known = read_file(path), {option.key for option in MIRROR}
    return [(key, shown, path.name) for key, shown in _flat(file.values) if key not in known]


def _flat(values: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """The keys and values of tables. The values of headers may be secrets.

    >>> list(_flat({"arm": [{"url": "http://a", "headers": {"X-Key": "secret"}}]}))
    [('arm[0].url', 'http://a'), ('arm[0].headers.X-Key', '***')]
    """
    for key, value in values.items():
        name = f"{place}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, each in enumerate(value):
                yield from _flat(each, f"{name}[{number}].")
        else:
            yield name, "***" if ".headers." in name else str(value)


# Files to start from
# Where the models of a key are, if no address is given.
ADDRESSES = {
    "OPENAI_API_KEY": "https://api.openai.com/v1",
    "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1",
    "MISTRAL_API_KEY": "https://api.mistral.ai/v1",
    "GROQ_API_KEY": "https://api.groq.com/openai/v1",
}
BASE = "OPENAI_BASE_URL"  # where programs look for the address of an OpenAI-style API


class Model(NamedTuple):
    """A model behind an OpenAI-style API, the variable that has its key, and its prices of a million tokens.

    >>> Model.parse("small=http://127.0.0.1:4000/v1")
    Model(name='small', url='http://127.0.0.1:4000/v1', key_env=None, prices=None)
    """

    name: str
    url: str
    key_env: str | None = None
    prices: tuple[float, float] | None = None

    @classmethod
    def parse(cls, text: str, key_env: str | None = None) -> "Model":
        """A model given as NAME or NAME=URL; without an address, the environment tells where it is."""
        name, given, rest = text.partition("=http")
        base = os.environ.get(BASE, "").rstrip("/")
        found = [base, *(url for variable, url in ADDRESSES.items() if os.environ.get(variable))]
        url = f"http{rest}".rstrip("/") if given else next(filter(None, found), None)
        if not name or url is None:
            rule = (
                f"has no address, and the environment has none of {', '.join((BASE, *ADDRESSES))}"
            )
            raise ParameterError.of("MODEL", text, rule, "write MODEL=URL, or set one of these")
        if not url.endswith("/v1"):
            rule = f"is at {url}, which does not end with /v1"
            raise ParameterError.of("MODEL", text, rule, "give the address of an OpenAI-style API")
        of_address = {each: variable for variable, each in ADDRESSES.items()}
        if base and os.environ.get("OPENAI_API_KEY"):  # as OpenAI's own clients do
            of_address.setdefault(base, "OPENAI_API_KEY")
        return cls(name, url, of_address.get(url, key_env))

    @property
    def price(self) -> dict[str, Any]:
        """What its calls cost, as a table of the file has it; a cent if no prices are known."""
        if self.prices is None:
            return {"cost": 0.01}
        prices = dict(zip(("prompt_tokens", "completion_tokens"), self.prices, strict=True))
        # The ceiling is that of 8,000 tokens in and 4,000 out.
        return {
            "prices": prices,
            "ceiling": round(0.008 * self.prices[0] + 0.004 * self.prices[1], 6),
        }

    def as_judge(self) -> dict[str, Any]:
        """The table of a judge."""
        key = {} if self.key_env is None else {"key_env": self.key_env}
        return {"model": self.name, "url": self.url, **key, "order": "both", **self.price}


def llm_mirror(
    models: Sequence[Model], judge: Model, dollars: float, share: float, label: str
) -> str:
    """The file of a mirror for models that a model judges, with labels. The first model is the incumbent."""
    arms: list[dict[str, Any]] = []
    for each in models:
        key = (
            {}
            if each.key_env is None
            else {"headers": {"Authorization": f"Bearer ${{{each.key_env}}}"}}
        )
        url = each.url.removesuffix("/v1")
        arms.append(
            {"name": each.name, "url": url, **key, **each.price, "json": {"model": each.name}}
        )
    port = free_port()
    return f"""\
# Point your clients at http://127.0.0.1:{port}/v1. The first model serves until another is known to be better.
listen = "127.0.0.1:{port}"
console = "127.0.0.1:{port + 1}"
store = "mirror.db"
drain = 120

[experiment]
deadline_seconds = 86400    # a label that comes later counts as missing

[mirror]
share = {share:g}
repeat = ["POST /v1/chat/completions"]    # a chat changes nothing, so it is safe to send twice
timeout = 120

[guardrails]
incumbent = {_toml(models[0].name)}

[budget]
allowance = [{dollars!r}, 86400]    # dollars a day, for copies and their judge, by the ceiling of a call until its price is known

[loss.judge]    # prices are of a million tokens; cost is that of a call, until you give prices
{_lines(judge.as_judge())}
[labels]    # for the first 200 copies, then a tenth
share = 0.1
to = {_toml(label)}
redact = ['[\\w.+-]+@[\\w.-]+', '\\d{{9,}}']    # addresses and long numbers: add what is private with you
{_tables(arms)}"""


def http_mirror(releases: Sequence[tuple[str, str]]) -> str:
    """The file of a mirror for releases of a service, by name and address. The first is the incumbent."""
    port = free_port()
    return f"""\
# Send your traffic to http://127.0.0.1:{port}. The first release serves until another is known to be better.
listen = "127.0.0.1:{port}"
console = "127.0.0.1:{port + 1}"
store = "mirror.db"

[mirror]
share = 0.05    # of the requests that are safe to send twice: GET, HEAD and OPTIONS

[guardrails]
incumbent = {_toml(releases[0][0])}

[budget]
rate = [10, 1]    # at most 10 requests a second explore

[loss]
status = 1.0
latency = {{ weight = 0.3, high = 1.0 }}    # 0 at once, 1 from a second on
{_tables([{"name": name, "url": url} for name, url in releases])}
# If users log in, add this to each arm: pass_credentials = ["Authorization", "Cookie"]
"""


def litellm_files(
    models: Sequence[Model], judge: Model, dollars: float, share: float
) -> dict[str, str]:
    """The files of the plug-in for LiteLLM, by name. The first model is the incumbent."""
    arms, table = [f"openai/{each.name}" for each in models], judge.as_judge()
    if judge.name in [each.name for each in models]:
        raise ParameterError.of("--judge", judge.name, "is an arm, too", NOT_ITS_OWN)
    try:
        JudgeConfig.model_validate(table)
    except ValidationError as error:
        raise ParameterError(first_problem(error, "judge")) from None
    deployments = ""
    for arm, each in zip(arms, models, strict=True):
        key = "none" if each.key_env is None else f"os.environ/{each.key_env}"
        given: dict[str, Any] = {"model": arm, "api_base": each.url, "api_key": key}
        if each.prices is not None:
            names = ("input_cost_per_token", "output_cost_per_token")
            given |= {name: price / 1e6 for name, price in zip(names, each.prices, strict=True)}
        deployments += f"  - model_name: chat\n    litellm_params: {json.dumps(given)}\n"
    costs = {arm: each.price.get("ceiling", 0.01) for arm, each in zip(arms, models, strict=True)}
    code = f'''\
"""The plug-in for LiteLLM's proxy: see config.yaml beside it."""

from pathlib import Path

import decoupled as dc
from decoupled_serve.litellm import Plugin

HERE = Path(__file__).parent
ARMS = {arms!r}  # the first serves until another is known to be better
JUDGE = {table!r}
COST = {costs!r}  # the most that a call costs
BUDGET = dc.Budget(share={share!r}, cost=COST, allowance=({dollars!r}, 86_400))  # dollars a day

plugin = Plugin(
    "chat", ARMS, {{"judge": JUDGE}}, save=HERE / "chat.json", folder=HERE,
    guardrails=dc.Guardrails(incumbent=ARMS[0]), budget=BUDGET,
)
'''
    start = "# LITELLM_MASTER_KEY=sk-... litellm --config config.yaml\n"
    text = f"{start}model_list:\n{deployments}litellm_settings:\n  callbacks: plugin.plugin\n"
    return {"config.yaml": text, "plugin.py": code}


def write_new(folder: Path, files: Mapping[str, str], *, force: bool = False) -> None:
    """Write files that are not there yet, and none if one is there or a `mirror.toml` is not valid."""
    for name in files:
        if (folder / name).exists() and not force:
            raise ParameterError(
                f"{folder / name}: is there already; move it away, or give --force"
            )
    if not folder.is_dir():
        raise ParameterError.of("--out", str(folder), "is not a folder", "make it first")
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        for name, text in files.items():
            (Path(beside) / name).write_text(text, encoding="utf-8")
            if name.endswith(".toml"):
                read_config(Path(beside) / name)
        for name in files:
            os.replace(Path(beside) / name, folder / name)


def free_port(first: int = 8080) -> int:
    """The first of these ports that is free on this machine, as is the one after it: 8080, 8082, ..."""
    for port in range(first, first + 1000, 2):
        try:
            for each in (port, port + 1):
                with socket.socket() as found:
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    found.bind(("127.0.0.1", each))
        except OSError:
            continue
        return port
    raise ParameterError(
        f"listen: no two ports from {first} on are free; end a program that has some"
    )


def _toml(value: object) -> str:
    """A value as TOML has it.

    >>> _toml({"cost": 0.5, "json": {"model": "a"}})
    '{ "cost" = 0.5, "json" = { "model" = "a" } }'
    """
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + " }"
        )
    return json.dumps(value, ensure_ascii=False)


def _lines(table: Mapping[str, object]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _tables(arms: Sequence[Mapping[str, object]]) -> str:
    return "".join(f"\n[[arm]]\n{_lines(arm)}" for arm in arms)
