"""An MCP server: what an assistant may ask about the experiments of a service. Its tools read, and change nothing."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import decoupled as dc
from decoupled.errors import DecoupledError, ParameterError

from . import __version__

if TYPE_CHECKING:
    from decoupled.client import Client

INSTRUCTIONS = """Experiments compare arms, such as models or releases, by their mean loss: lower is better.

Is it safe to switch to an arm? Ask `gate` for that arm against what is served now: only "passed" is a yes; "waiting"
means that nobody knows yet, and "failed" that it is worse. Then ask `segments` whether the answer differs by request.
`verdict` says which arm is best, and `replay` what another policy would have lost on a log. Quote the intervals: they
hold at every moment at once, so asking again is fine. No tool changes anything."""
_SHOWN = (
    "name",
    "status",
    "arms",
    "policy_label",
    "feedback",
    "loss_range",
    "context",
    "guardrails",
)


class Tools:
    """The tools, each a method: its signature and its docstring are what the assistant reads."""

    def __init__(self, client: "Client", logs: Path | None = None) -> None:
        self._client, self._logs = client, logs

    def experiments(self, prefix: str = "", after: str | None = None) -> dict[str, Any]:
        """List experiments; `guardrails.incumbent` is served until another arm is shown to be better. `after` is `next`."""
        filters = {"prefix": prefix, "after": after}
        given = {name: value for name, value in filters.items() if value}
        page = self._client.request("GET", "/v1/experiments", params=given)
        shown = [{name: each[name] for name in _SHOWN} for each in page["experiments"]]
        return {"experiments": shown, "next": page["next"]}

    def verdict(self, experiment: str) -> dict[str, Any]:
        """Say which arm is best, as far as that is decided, and each arm's mean loss. Quote `text`."""
        return self._client.verdict(experiment)

    def segments(
        self, experiment: str, by: tuple[str, ...] = (), limit: int = 20
    ) -> dict[str, Any]:
        """Say for which requests, told apart `by` fields of the context, which arm is best. All verdicts hold together."""
        from decoupled.client import experiment_path

        path = f"{experiment_path(experiment)}/segments"
        found: dict[str, Any] = self._client.request(
            "GET", path, params={"by": list(by), "limit": limit}
        )
        return found

    def gate(
        self, experiment: str, arm: str, against: str | None = None, margin: float = 0
    ) -> dict[str, Any]:
        """Say whether it is safe to switch to `arm`: whether its mean loss is shown to be lower than that of `against` plus `margin`.

        `against` is what is served now; by default the incumbent, or else every other arm.
        """
        return self._client.gate(experiment, arm, against=against, margin=margin)

    def replay(
        self,
        policy: str | dict[str, Any],
        experiment: str | None = None,
        file: str | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
    ) -> dict[str, Any]:
        """Estimate from a log what a policy would have lost in place of what was served. No experiment learns from it.

        `policy` is an arm, shares by arm, or a policy such as {"name": "FTPL"}. The log is that of `experiment`, or a CSV or
        Parquet `file` in the folder of --logs, whose losses lie in `loss_range`.
        """
        described = not isinstance(policy, str) and isinstance(policy.get("name"), str)
        candidate: Any = dc.Policy.from_dict(policy) if described else policy  # type: ignore[arg-type]
        if (experiment is None) == (file is None):
            raise ParameterError("replay: needs one log; give either experiment or file")
        if experiment is None:
            return dc.evaluate(self._file(str(file)), candidate, loss_range=loss_range).to_dict()
        settings = self._client.experiment(experiment)
        low, high = settings["loss_range"]
        with TemporaryDirectory() as folder:
            self._client.log(experiment, log := Path(folder, "log.csv"))
            return dc.evaluate(
                log, candidate, loss_range=(low, high), risk=settings["risk"]
            ).to_dict()

    def _file(self, name: str) -> Path:
        path = Path() if self._logs is None else (self._logs / name).resolve()
        if self._logs is None or not (path.is_file() and path.is_relative_to(self._logs.resolve())):
            remedy = "name a file there; the option --logs of the server sets the folder"
            raise ParameterError.of("file", name, "is not in the folder of logs", remedy)
        return path


def mcp_server(client: "Client", logs: Path | None = None) -> Any:
    """The server, with every public method of `Tools`."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    def told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        @wraps(tool)
        def call(*arguments: Any, **options: Any) -> dict[str, Any]:
            try:
                return tool(*arguments, **options)
            except (DecoupledError, OSError) as error:  # for the assistant to read
                raise ToolError(str(error)) from None

        return call

    server: MCPServer[Any] = MCPServer("decoupled", instructions=INSTRUCTIONS, version=__version__)
    tools, reads = Tools(client, logs), ToolAnnotations(read_only_hint=True, idempotent_hint=True)
    for name in filter(lambda each: not each.startswith("_"), vars(Tools)):
        server.tool(annotations=reads)(told(getattr(tools, name)))
    return server
