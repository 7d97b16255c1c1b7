"""Defines the command `decoupled mcp`."""

from pathlib import Path
from typing import Annotated

import typer

from decoupled.cli import URL, KeyFile, Url, connected, report_errors


def mcp(
    logs: Annotated[
        Path | None, typer.Option(help="A folder of logs that the tool `replay` may read.")
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
