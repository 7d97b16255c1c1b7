"""An MCP server: what an assistant may ask about the experiments of a service. Its tools read, and change nothing."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

import decoupled as dc
from decoupled.errors import DecoupledError, ParameterError

from . import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from decoupled.client import Client, ExperimentFilters

INSTRUCTIONS = """Experiments compare arms, such as models or releases, by their mean loss: lower is better.

Is it safe to switch to an arm? Ask `gate` for that arm against what is served now: only "passed" is a yes; "waiting"
means that nobody knows yet, and "failed" that it is worse. Then ask `segments` whether the answer differs by request.
`verdict` says which arm is best, and `replay` what another policy would have lost on a log. Quote the intervals: they
hold at every moment at once, so asking again is fine. No tool changes anything."""

Experiment = Annotated[str, Field(description="The name of the experiment.")]
_SHOWN = ("name", "status", "arms", "policy_label", "feedback", "loss_range", "context", "guardrails")


class Tools:
    """The tools, each a method: its docstring and its parameters are what the assistant reads."""

    def __init__(self, client: "Client", logs: Path | None = None) -> None:
        self._client, self._logs = client, logs

    def experiments(
        self,
        prefix: Annotated[str, Field(description="What their names begin with.")] = "",
        after: Annotated[str | None, Field(description="`next` of the page before.")] = None,
    ) -> dict[str, Any]:
        """List experiments with their arms, policy and guardrails; `guardrails.incumbent` is what is served until another arm is shown to be better."""
        filters: ExperimentFilters = {"prefix": prefix} if prefix else {}
        page = self._client.experiments(after, **filters)
        shown = [{name: each[name] for name in _SHOWN} for each in page["experiments"]]
        return {"experiments": shown, "next": page["next"]}

    def verdict(self, experiment: Experiment) -> dict[str, Any]:
        """Say which arm is best, as far as that is decided, with the mean loss of each arm and its interval. `text` is the sentence to quote."""
        return self._client.verdict(experiment)

    def segments(
        self,
        experiment: Experiment,
        by: Annotated[list[str], Field(description="The fields that tell segments apart.")] = [],  # noqa: B006
        limit: Annotated[int, Field(description="How many segments at most.")] = 20,
    ) -> dict[str, Any]:
        """Say for which requests which arm is best. The verdicts of all segments hold together."""
        return self._client.segments(experiment, by=by, limit=limit)

    def gate(
        self,
        experiment: Experiment,
        arm: Annotated[str, Field(description="The arm to switch to.")],
        against: Annotated[
            str | None, Field(description="What is served now; else the incumbent, or every other arm.")
        ] = None,
        margin: Annotated[
            float, Field(description="How much higher its mean loss may be; with 0 it must be lower.")
        ] = 0.0,
    ) -> dict[str, Any]:
        """Say whether it is safe to switch to an arm: whether it is shown to be no worse by more than a margin. `state` is passed, waiting or failed."""
        return self._client.gate(experiment, arm, against=against, margin=margin)

    def replay(
        self,
        policy: Annotated[
            str | dict[str, Any],
            Field(description='An arm, shares by arm, or a policy such as {"name": "FTPL"}.'),
        ],
        experiment: Annotated[str | None, Field(description="The experiment whose log to use.")] = None,
        file: Annotated[
            str | None, Field(description="In its place, a CSV or Parquet log in the folder of --logs.")
        ] = None,
        loss_range: Annotated[
            tuple[float, float], Field(description="The lowest and highest loss in `file`.")
        ] = (0.0, 1.0),
    ) -> dict[str, Any]:
        """Estimate from a log what a policy would have lost in place of what was served, with intervals. The experiment learns nothing."""
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
            return dc.evaluate(log, candidate, loss_range=(low, high), risk=settings["risk"]).to_dict()

    def _file(self, name: str) -> Path:
        """A file in the folder of logs, and nowhere else."""
        if self._logs is None:
            raise ParameterError.of("file", name, "no folder was named", "start the server with --logs")
        path = (self._logs / name).resolve()
        if not (path.is_relative_to(self._logs.resolve()) and path.is_file()):
            raise ParameterError.of("file", name, "is not in the folder of --logs", "name a file there")
        return path


def mcp_server(client: "Client", logs: Path | None = None) -> "MCPServer[Any]":
    """The server, with every public method of `Tools`.

    >>> mcp_server(dc.Client("http://127.0.0.1:8000")).name
    'decoupled'
    """
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    def told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """An error of this package is for the assistant to read; any other is a defect."""

        @wraps(tool)
        def call(*arguments: Any, **options: Any) -> dict[str, Any]:
            try:
                return tool(*arguments, **options)
            except (DecoupledError, OSError) as error:
                raise ToolError(str(error)) from None

        return call

    server: MCPServer[Any] = MCPServer("decoupled", instructions=INSTRUCTIONS, version=__version__)
    tools, reads = Tools(client, logs), ToolAnnotations(read_only_hint=True, idempotent_hint=True)
    for name in vars(Tools):
        if not name.startswith("_"):
            server.tool(annotations=reads)(told(getattr(tools, name)))
    return server
