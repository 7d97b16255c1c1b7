"""Lists, deletes, and moves learners and logs from the shell: more of `decoupled client`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .client import Experiment, Tag, check_new, service_command, show, tags_of
from .client import client as client

if TYPE_CHECKING:
    from ..client.sync import Client

Most = Annotated[int, typer.Option(min=1, help="How many to print at most.")]


@service_command("list")
def client_list(
    service: "Client",
    sort: Annotated[
        str, typer.Option(help="name, -name, created_at, or -created_at for the newest first.")
    ] = "name",
    status: Annotated[str | None, typer.Option(help="active or archived; both if not given.")] = None,
    policy: Annotated[str | None, typer.Option(help="The name of their policy, such as FTPL.")] = None,
    prefix: Annotated[str | None, typer.Option(help="What their names begin with.")] = None,
    most: Most = 1_000,
) -> None:
    """List experiments, one line each: name, status, policy, arms, and when it was created."""
    from itertools import islice

    given = {"sort": sort, "status": status, "policy": policy, "prefix": prefix}
    filters: Any = {name: value for name, value in given.items() if value is not None}
    for each in islice(service.iter_experiments(**filters), most):
        arms = f"{len(each['arms'])} arms"
        typer.echo(
            f"{each['name']}  {each['status']}  {each['policy_label']}  {arms}  {each['created_at']}"
        )


@service_command("decisions")
def client_decisions(
    service: "Client",
    name: Experiment,
    sort: Annotated[str, typer.Option(help="-made_at for the newest first, or made_at.")] = "-made_at",
    status: Annotated[str | None, typer.Option(help="pending, applied, expired or unobserved.")] = None,
    mode: Annotated[str | None, typer.Option(help="both, exploit or explore.")] = None,
    tag: Tag = None,
    most: Most = 100,
) -> None:
    """List the decisions of an experiment, one line of JSON each."""
    import json
    from dataclasses import asdict
    from itertools import islice

    given = {"sort": sort, "status": status, "mode": mode, "tags": tags_of(tag)}
    filters: Any = {option: value for option, value in given.items() if value is not None}
    for each in islice(service.iter_decisions(name, **filters), most):
        typer.echo(json.dumps(asdict(each), ensure_ascii=False))


@service_command("delete")
def client_delete(
    service: "Client",
    name: Annotated[str, typer.Argument(help="The experiment, which must be archived.")],
    confirm: Annotated[
        str | None, typer.Option(help="Its name again; asked for if not given.", metavar="NAME")
    ] = None,
) -> None:
    """Delete an experiment that was archived long enough ago, with its whole log."""
    again: str = typer.prompt("Type its name to delete it") if confirm is None else confirm
    show(service.delete(name, confirm=again))


@service_command("learner")
def client_learner(
    service: "Client",
    name: Experiment,
    file: Annotated[Path, typer.Argument(help="A new file, for Learner.load or create --learner.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write what an experiment has learned, with its random stream, to a file."""
    from ..base.files import write_atomically

    check_new(file, force)
    write_atomically(file, service.learner(name), overwrite=force)
    typer.echo(f"Written to {file}")


@service_command("replay", arguments=("file",))
def client_replay(
    service: "Client",
    name: Experiment,
    file: Annotated[
        Path, typer.Argument(help="A log: .csv, .parquet, or .jsonl with an object on each line.")
    ],
    unrandomised: Annotated[
        bool,
        typer.Option(
            "--unrandomised",
            help="Take all propensities as 1: only if every arm was seen in every round, or the policy keeps means.",
        ),
    ] = False,
) -> None:
    """Let an experiment learn from a log. The same log again learns nothing twice."""
    show(service.replay(name, file, unrandomised=unrandomised))
