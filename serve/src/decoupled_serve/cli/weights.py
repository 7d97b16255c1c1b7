"""Defines the commands that ask a running service for others: `weights` for a gateway, `mcp` for an assistant."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from decoupled.cli import URL, Experiment, KeyFile, Url, connected, report_errors
from decoupled.errors import ParameterError

from .options import ends_on_sigterm

if TYPE_CHECKING:
    from ..weights.shares import Document, Shares
    from ..weights.targets import Target

KINDS = ("nginx", "haproxy", "httproute", "aigatewayroute", "json")
_RELOAD = "nginx -s reload"


def weights(
    experiment: Experiment,
    to: Annotated[str, Option(help=f"The gateway: {', '.join(KINDS)}.")] = "json",
    out: Annotated[
        Path | None, Option(help="The file to replace; else the standard output. Not for haproxy.")
    ] = None,
    reload: Annotated[
        str | None,
        Option(
            metavar="COMMAND",
            help=f"Command to run after a change. For nginx `{_RELOAD}`; '' for none.",
        ),
    ] = None,
    upstream: Annotated[
        list[str] | None,
        Option(metavar="ARM=NAME", help="The gateway's name for an arm; repeat it for several."),
    ] = None,
    by: Annotated[
        str,
        Option(
            help="nginx: the variable to draw by, such as $cookie_session to keep a session's arm."
        ),
    ] = "$request_id",
    socket: Annotated[
        str | None,
        Option(help="haproxy: its runtime socket, a path or HOST:PORT.", metavar="SOCKET"),
    ] = None,
    backend: Annotated[
        str | None,
        Option(help="haproxy: the backend, whose servers are the arms, if not EXPERIMENT."),
    ] = None,
    gateway: Annotated[
        str | None, Option(help="httproute, aigatewayroute: the Gateway that the route belongs to.")
    ] = None,
    service_port: Annotated[int, Option(help="httproute: the port of the Services.")] = 80,
    model: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=MODEL",
            help="aigatewayroute: the model to ask an upstream for; repeat it.",
        ),
    ] = None,
    watch: Annotated[
        bool, Option("--watch", help="Keep running, and write whenever a share has moved.")
    ] = False,
    every: Annotated[float, Option(min=0.1, help="Seconds between checks with --watch.")] = 10.0,
    threshold: Annotated[
        float, Option(min=0.0, max=1.0, help="How far a share may move before it is written.")
    ] = 0.01,
    fallback: Annotated[
        str | None,
        Option(
            metavar="ARM",
            help="Gets everything if the service is unreachable and nothing was written yet.",
        ),
    ] = None,
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Write the probabilities of exploiting, after guardrails, into a gateway.

    While the service is unreachable, the gateway keeps what it has.
    """
    with (
        report_errors("what was written stays"),
        ends_on_sigterm(),
        connected(url, key_file) as service,
    ):
        from ..weights.shares import all_to, shares_of
        from ..weights.targets import FileTarget, Follower, HaProxy

        names = _names("--upstream", upstream)

        def look() -> "Shares":
            state = service.state(experiment)
            gone = names.keys() - map(str, state["arms"])
            retired = service.experiment(experiment)["retired"] if gone else ()
            return shares_of(state, names, retired, lenient=watch)

        if to not in KINDS:
            raise ParameterError.of("--to", to, "is not known", f"choose one of {', '.join(KINDS)}")
        document = None if to == "haproxy" else _document(to, by, gateway, service_port, model)
        target: Target
        if document is not None and out is not None:
            command = shlex.split(_RELOAD if reload is None and to == "nginx" else reload or "")
            target = FileTarget(out, document, command)
        elif document is not None:
            if watch:
                raise ParameterError("--watch: needs a file to write; name it with --out")
            typer.echo(document.text(look()), nl=False)
            return
        elif socket is None:
            raise ParameterError("--socket: is missing; give the path of HAProxy's `stats socket`")
        else:
            target = HaProxy(socket, backend or experiment)
        instead = None if fallback is None else all_to(experiment, names.get(fallback, fallback))

        def warn(problem: str) -> None:
            typer.echo(f"warning: {problem}", err=True)

        follower = Follower(look, target, threshold, instead, typer.echo, warn)
        if watch:
            follower.forever(lambda: time.sleep(every))
        else:
            follower.once()


def _names(option: str, pairs: list[str] | None) -> dict[str, str]:
    shape, example = ("ARM=NAME", "next=checkout-v2")
    if option == "--model":
        shape, example = ("NAME=MODEL", "large=gpt-5")
    for text in pairs or ():
        if "=" not in text:
            raise ParameterError.of(option, text, f"must be {shape}", f"for example {example}")
    return {first: second for first, _, second in (text.rpartition("=") for text in pairs or ())}


def _document(
    to: str, by: str, gateway: str | None, port: int, models: list[str] | None
) -> "Document":
    from ..weights.shares import AiGatewayRoute, HttpRoute, Json, Nginx

    if models and to != "aigatewayroute":
        raise ParameterError.of("--model", models[0], "is for --to aigatewayroute", "leave it out")

    if to == "nginx":
        return Nginx(by)
    if to == "json":
        return Json()
    if gateway is None:
        raise ParameterError("--gateway: is missing; name the Gateway that the route belongs to")
    if to == "aigatewayroute":
        return AiGatewayRoute(gateway, port, _names("--model", models))
    return HttpRoute(gateway, port)


def mcp(
    logs: Annotated[
        Path | None, Option(help="A folder of logs that the tool `replay` may read.")
    ] = None,
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Serve read-only tools to an assistant over MCP, on the standard input and output.

    It can then answer whether it is safe to switch. A key with the role `read` is enough.
    """
    from ..mcp import mcp_server

    with report_errors(), connected(url, key_file) as service:
        mcp_server(service, logs).run("stdio")
