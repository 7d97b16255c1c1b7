"""Talks to a running service from the shell: `decoupled client`.

What a command needs is imported when it runs.
"""

import json
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ..errors import ParameterError
from .shared import WRONG, flag, report_errors, with_parameters_of

if TYPE_CHECKING:
    from ..client.sync import Client


def option(text: str, *flags: str) -> Any:
    """An option of a command, with its help."""
    return typer.Option(*flags, help=text)


def argument(text: str) -> Any:
    """An argument of a command, with its help."""
    return typer.Argument(help=text)


Url = Annotated[str, typer.Option(envvar="DECOUPLED_URL", help="Where the service is.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help=(
            "A file with the API key; or set DECOUPLED_KEY or DECOUPLED_KEY_FILE. "
            "Never pass a key as an option: others can see it."
        ),
    ),
]

Experiment = Annotated[str, argument("The experiment.")]
Tag = Annotated[
    list[str] | None, typer.Option(help="A tag; repeat it for several.", metavar="NAME:VALUE")
]

# Which changes of an audit trail to show, for `decoupled audit` as well.
AuditSubject: TypeAlias = Annotated[
    str | None, argument("An experiment, the id of a key, or a file; all if none is named.")
]
AuditAction: TypeAlias = Annotated[str | None, option("Only this kind, such as guardrails.change.")]
AuditTenant: TypeAlias = Annotated[str | None, option("Only changes of this tenant.")]
AuditLimit: TypeAlias = Annotated[
    int, typer.Option(min=1, help="How many changes to show at most.")
]

Most = Annotated[int, typer.Option(min=1, help="How many to print at most.")]
AsJson = Annotated[bool, option("Print the whole answer as JSON.", "--json")]

client = typer.Typer(help="Talk to a running service from the shell.", no_args_is_help=True)

URL = "http://127.0.0.1:8000"


def connected(url: str, key_file: Path | None) -> "Client":
    """A client whose errors name the options of the command line.

    >>> connected("http://127.0.0.1:8000", None)
    ShellClient('http://127.0.0.1:8000')
    """
    from ..base.files import read_secret
    from ..client.exchange import KEY_VARIABLE, Remedies
    from ..client.sync import Client

    class ShellClient(Client):
        remedies = Remedies(
            key=f"pass --key-file, or set {KEY_VARIABLE}",
            url=(
                "is `decoupled serve` running there? pass its address with --url, or set "
                "DECOUPLED_URL"
            ),
            undelivered="run the command again",
        )

    key = None if key_file is None else read_secret("--key-file", key_file)
    return ShellClient(url, key, notify=lambda reason: typer.echo(f"Waiting: {reason}", err=True))


def service_command(
    name: str, arguments: Container[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of `decoupled client`, with the options --url and --key-file.

    The function is called with a client as `service`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(url: str, key_file: Path | None, **values: Any) -> None:
            with report_errors(arguments=arguments), connected(url, key_file) as service:
                command(service=service, **values)

        added = [flag("url", Url, URL), flag("key_file", KeyFile, None)]
        return client.command(name)(with_parameters_of(command, run, "service", added))

    return decorate


def show(content: Any, text: str | None = None) -> None:
    """Print JSON, or a text in its place."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False) if text is None else text)


# What a log may be when it is sent, by its suffix.
LOG_TYPES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".jsonl": "application/x-ndjson",
}


def experiment_path(name: str) -> str:
    """The path of an experiment; the client is loaded when a command runs."""
    from ..client import requests

    return requests.experiment_path(name)


def tags_of(tags: list[str] | None) -> dict[str, str] | None:
    """Tags from texts such as "country:de"; None if there are none."""
    if not tags:
        return None
    values = {}
    for text in tags:
        name, separator, value = text.partition(":")
        if not separator:
            raise ParameterError.of("--tag", text, "must be NAME:VALUE", "for example country:de")
        values[name] = value
    return values


def _policy_of(policy: str) -> Any:
    """A policy as the service takes it, from its name or its JSON."""
    if not policy.lstrip().startswith("{"):
        return {"name": policy}
    return _object("--policy", policy, "give a name, or what policy.to_json() gives")


@service_command("create")
def client_create(
    service: "Client",
    name: Experiment,
    arms: Annotated[
        list[str] | None, argument("Its arms, two or more; none with --learner.")
    ] = None,
    *,
    policy: Annotated[
        str, option("A policy's name, such as FTPL or Ladder, or its JSON.")
    ] = "Ladder",
    loss_range: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="The lowest and the highest possible loss."),
    ] = (0.0, 1.0),
    deadline: Annotated[float | None, option("Seconds within which feedback must arrive.")] = None,
    expired_loss: Annotated[
        float | None, option("The loss of a decision whose deadline passed; none if not given.")
    ] = None,
    seed: Annotated[
        int | None, option("Seed of the draws, for tests. Default: fresh randomness.")
    ] = None,
    demo: Annotated[
        bool, option("For tests only: the console may send made-up losses.", "--demo")
    ] = False,
    feedback: Annotated[
        str, option("loss, or preference: which of the two arms did better.")
    ] = "loss",
    risk: Annotated[
        float, option("The probability that an interval or a verdict is ever wrong.")
    ] = 0.05,
    drift: Annotated[
        bool, option("Whether losses may drift; else intervals are mostly narrower.")
    ] = True,
    patience: Annotated[
        int | None,
        option(
            "How many newer decisions wait for one without feedback; "
            "1,000, or the labels' deadline."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        option(
            "How many decisions ask for a label, if a judge gives losses, as JSON: "
            "'{\"share\": 0.1}'."
        ),
    ] = None,
    log_keys: Annotated[str, option("How the log stores keys: hashed, plain or off.")] = "hashed",
    context: Annotated[
        str | None,
        option('The fields of contexts, by type, as JSON, such as \'{"subject": "text"}\'.'),
    ] = None,
    unknown_context: Annotated[
        str, option("What to do with other fields: refuse or ignore.")
    ] = "refuse",
    log_context: Annotated[
        str, option("How the log stores texts of contexts: plain or hashed.")
    ] = "plain",
    guardrails: Annotated[
        str | None, option('Guardrails as JSON: \'{"incumbent": "small"}\'.')
    ] = None,
    budget: Annotated[
        str | None, option("A budget for exploring as JSON: '{\"share\": 0.01}'.")
    ] = None,
    learner: Annotated[
        Path | None,
        option("A saved learner to start from; its arms, policy and loss range come with it."),
    ] = None,
) -> None:
    """Create an experiment."""
    if (learner is None) == (not arms):
        raise typer.BadParameter("give the arms, or --learner, which has them")
    settings = _objects(context=context, guardrails=guardrails, budget=budget, labels=labels)
    settings.update(
        deadline_seconds=deadline,
        expired_loss=expired_loss,
        patience=patience,
        feedback=feedback,
        demo=demo,
        log_keys=log_keys,
        log_context=log_context,
        unknown_context=unknown_context,
    )
    if learner is None:
        settings.update(
            policy=_policy_of(policy),
            arms=arms,
            loss_range=loss_range,
            seed=seed,
            risk=risk,
            drift=drift,
        )
    else:
        try:
            settings["learner"] = learner.read_text("utf-8")
        except UnicodeDecodeError:
            remedy = "give what Learner.save wrote"
            raise ParameterError.of("--learner", str(learner), "is not text", remedy) from None
    show(service.create(name, **settings))


@service_command("decide")
def client_decide(
    service: "Client",
    name: Experiment,
    *,
    mode: Annotated[str, option("both, exploit or explore.")] = "both",
    key: Annotated[
        str | None, option("A session or a user, which is served the same arm again.")
    ] = None,
    tag: Tag = None,
    baseline: Annotated[
        str | None, option("Expected losses by arm, as JSON: '{\"a\": 0.3}'.")
    ] = None,
    context: Annotated[
        str | None, option('The context of the request as JSON: \'{"subject": "law"}\'.')
    ] = None,
    advice: Annotated[
        str | None, option('What advisers say, as JSON: \'{"router": "a"}\'.')
    ] = None,
    why: Annotated[bool, option("Also say why a contextual policy drew its arm.", "--why")] = False,
) -> None:
    """Ask for a decision. Send back the loss of its *explored* arm."""
    options = _objects(baseline=baseline, context=context, advice=advice)
    options.update(mode=mode, key=key, tags=tags_of(tag), why=why)
    decision = service.decide(name, **options)
    show({**vars(decision), "send_back_the_loss_of": decision.explore})


@service_command("feedback")
def client_feedback(
    service: "Client",
    decision: Annotated[str, argument("The decision's id.")],
    *,
    loss: Annotated[float | None, option("The loss of the *explored* arm.")] = None,
    reward: Annotated[float | None, option("Or its reward.")] = None,
    preference: Annotated[
        str | None, option("Or which arm did better: explore, exploit or tie.")
    ] = None,
    arm: Annotated[
        str | None,
        option("The arm of the loss, as a safeguard: any but the explored arm is refused."),
    ] = None,
    judged: Annotated[
        str | None,
        option(
            "With labels: the judge's loss, a number or a preference. "
            "The other options are the label."
        ),
    ] = None,
    position: Annotated[
        float | None, option("How much the judge preferred what it saw first, from -1 to 1.")
    ] = None,
    cost: Annotated[
        float | None, option("The cost of exploring and judging, for a money budget.")
    ] = None,
) -> None:
    """Send the loss or reward of the arm that a decision *explored*, or a preference.

    A preference says which of its arms did better.
    """
    from ..client.errors import wrong_feedback

    wrong = wrong_feedback(
        has_loss=loss is not None,
        has_reward=reward is not None,
        has_preference=preference is not None,
        loss="--loss",
        reward="--reward",
    )
    if wrong is not None and (judged is None or loss is not None or reward is not None):
        raise typer.BadParameter("; ".join(wrong))
    explored = None if arm is None else service.decision(decision).explore
    loss_arm = explored if str(explored) == arm else arm  # an arm may be a number
    preferred: Any = preference
    judgement: Any = judged
    with suppress(ValueError, TypeError):  # a preference, or nothing
        judgement = float(judgement)
    applied = service.feedback(
        decision,
        loss=loss,
        reward=reward,
        arm=loss_arm,
        preference=preferred,
        judged=judgement,
        position=position,
        cost=cost,
    )
    assert applied is not None  # without an outbox it is applied, or an error
    show(vars(applied))


@service_command("label")
def client_label(
    service: "Client",
    decision: Annotated[str, argument("The decision's id.")],
    loss: Annotated[float | None, option("The true loss of the *explored* arm.")] = None,
    reward: Annotated[float | None, option("Or its reward.")] = None,
    preference: Annotated[
        str | None, option("Or which arm did better: explore, exploit or tie.")
    ] = None,
) -> None:
    """Send the label of a judged decision that asks for one."""
    preferred: Any = preference
    show(vars(service.label(decision, loss=loss, reward=reward, preference=preferred)))


@service_command("labels")
def client_labels(service: "Client", name: Experiment, limit: Most = 100) -> None:
    """Show the decisions that await a label, oldest first, and the labels so far."""
    show(service.request("GET", f"{experiment_path(name)}/labels", params={"limit": limit}))


@service_command("show")
def client_show(
    service: "Client",
    name: Annotated[str | None, argument("An experiment; all are listed if none is named.")] = None,
    context: Annotated[
        str | None, option("The context to show probabilities for, as JSON.")
    ] = None,
) -> None:
    """Show what an experiment has learned, or list the experiments."""
    if name is None:
        show(service.request("GET", "/v1/experiments"))
        return
    show(service.state(name, **_objects(context=context)))


@service_command("verdict")
def client_verdict(
    service: "Client",
    name: Experiment,
    as_json: AsJson = False,
    wait: Annotated[bool, option("Wait until it is decided.", "--wait")] = False,
) -> None:
    """Show which arm is best, if that is decided, with the mean loss of each arm and the regret."""
    from .verdict import verdict_text, wait_for_decision

    verdict = wait_for_decision(service, name) if wait else service.verdict(name)
    show(verdict, None if as_json else verdict_text(verdict))


@service_command("segments")
def client_segments(
    service: "Client",
    name: Experiment,
    by: Annotated[
        list[str] | None,
        option("A field of the context that tells segments apart; repeat it for several."),
    ] = None,
    limit: Annotated[int, option("How many segments at most, the most observed first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show which arm is best for which requests. The verdicts of all segments share one risk."""
    from .verdict import segments_text

    params = {"by": by or [], "limit": limit}
    segments = service.request("GET", f"{experiment_path(name)}/segments", params=params)
    show(segments, None if as_json else segments_text(segments))


@service_command("gate")
def client_gate(
    service: "Client",
    name: Experiment,
    arm: Annotated[str, argument("The arm that is to be promoted.")],
    against: Annotated[
        str | None,
        option("The arm to compare it with. Default: the incumbent, or else every other arm."),
    ] = None,
    margin: Annotated[float, option("How much higher its mean loss may be.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Say whether an arm is shown to be no worse by more than a margin.

    The exit status is 0 if so, and 1 if not, or not yet.
    """
    gate = service.gate(name, arm, against=against, margin=margin)
    show(gate, None if as_json else gate["text"])
    if not gate["open"]:
        raise typer.Exit(WRONG)


@service_command("audit")
def client_audit(
    service: "Client",
    subject: AuditSubject = None,
    action: AuditAction = None,
    tenant: AuditTenant = None,
    before: Annotated[
        int | None, option("Only changes before this id, the `next` of a page.")
    ] = None,
    limit: AuditLimit = 100,
) -> None:
    """Show who changed what, newest first. Needs an admin key."""
    params = _without_none(
        {"subject": subject, "action": action, "tenant": tenant, "before": before, "limit": limit}
    )
    show(service.request("GET", "/v1/audit", params=params))


@service_command("evaluate")
def client_evaluate(service: "Client", name: Experiment, tag: Tag = None) -> None:
    """Estimate the mean loss of every arm, and of what was exploited, from the log."""
    from ..client.requests import tag_params

    params = tag_params(tags_of(tag))
    show(service.request("GET", f"{experiment_path(name)}/evaluation", params=params))


@service_command("log", arguments=("format", "file"))
def client_log(
    service: "Client",
    name: Experiment,
    file: Annotated[Path, argument("A new file; its ending, .csv or .parquet, sets the format.")],
    format: Annotated[  # noqa: A002
        str | None, option("csv or parquet, regardless of the ending.")
    ] = None,
    force: Annotated[bool, option("Replace FILE if it exists.", "--force")] = False,
    tag: Tag = None,
) -> None:
    """Write the log of an experiment to a file."""
    from ..client.results import format_of

    kind = format_of(file, format)
    check_new(file, force=force)
    service.log(name, file, kind, overwrite=force, tags=tags_of(tag))
    typer.echo(f"Written to {file}")


def check_new(file: Path, *, force: bool) -> None:
    """Refuse to replace a file before any work is done, unless forced."""
    if file.is_file() and not force:
        remedy = "choose another name, or replace it with --force"
        raise ParameterError.of("FILE", str(file), "exists already", remedy)


@service_command("archive")
def client_archive(service: "Client", name: Experiment) -> None:
    """End an experiment: it makes no more decisions, and still takes feedback."""
    show(service.request("POST", f"{experiment_path(name)}/archive"))


@service_command("pin")
def client_pin(
    service: "Client",
    name: Experiment,
    arm: Annotated[str, argument("The arm that every decision exploits from now on.")],
) -> None:
    """Exploit one arm in every decision: the kill switch. Exploring and learning go on."""
    show(service.pin(name, _named(service, name, [arm])[0]))


@service_command("unpin")
def client_unpin(service: "Client", name: Experiment) -> None:
    """Let the policy choose the arm to exploit again."""
    show(service.unpin(name))


@service_command("down")
def client_down(
    service: "Client",
    name: Experiment,
    arms: Annotated[
        list[str] | None, argument("The arms that are down; none if not given.")
    ] = None,
) -> None:
    """Set the arms that are down, which no decision chooses, for a health check."""
    body = {"arms": _named(service, name, arms or [])}
    show(service.request("PUT", f"{experiment_path(name)}/down", json=body))


@service_command("guardrails", arguments=("CHANGES",))
def client_guardrails(
    service: "Client",
    name: Experiment,
    changes: Annotated[
        str, argument('Changes as JSON: \'{"floors": {"a": 0.1}, "pinned": null}\'.')
    ],
) -> None:
    """Change the guardrails of an experiment; those not named stay as they are."""
    show(service.change_guardrails(name, **_object("CHANGES", changes)))


@service_command("budget", arguments=("LIMITS",))
def client_budget(
    service: "Client",
    name: Experiment,
    limits: Annotated[
        str, argument("The whole budget as JSON: '{\"share\": 0.01}'; '{}' for no limit.")
    ],
) -> None:
    """Set how much an experiment may explore."""
    show(service.set_budget(name, **_object("LIMITS", limits)))


def _named(service: "Client", name: str, arms: list[str]) -> list[Any]:
    """Arms by their texts: an arm of the experiment may be a number."""
    arm_of = {str(arm): arm for arm in reversed(service.experiment(name)["arms"])}
    return [arm_of.get(text, text) for text in arms]


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    """The values that an option gave."""
    return {name: value for name, value in values.items() if value is not None}


def _objects(**texts: str | None) -> dict[str, Any]:
    """What options of these names hold as JSON; None for those that are not given."""
    return {
        name: None if text is None else _object(f"--{name}", text) for name, text in texts.items()
    }


def _object(argument: str, text: str, remedy: str = "quote it") -> Any:
    """The JSON object that an argument holds."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ParameterError.of(argument, text, f"is not JSON ({error})", remedy) from None
    if not isinstance(content, dict):
        raise ParameterError.of(argument, text, "must be a JSON object", "for example '{}'")
    return content


@service_command("list")
def client_list(
    service: "Client",
    sort: Annotated[
        str, option("name, -name, created_at, or -created_at for the newest first.")
    ] = "name",
    status: Annotated[str | None, option("active or archived; both if not given.")] = None,
    policy: Annotated[str | None, option("The name of their policy, such as FTPL.")] = None,
    prefix: Annotated[str | None, option("What their names begin with.")] = None,
    most: Most = 1_000,
) -> None:
    """List experiments, one line each: name, status, policy, arms, and when it was created."""
    from itertools import islice

    filters: Any = _without_none(
        {"sort": sort, "status": status, "policy": policy, "prefix": prefix}
    )
    for experiment in islice(service.iter_experiments(**filters), most):
        arms = f"{len(experiment['arms'])} arms"
        label = experiment["policy_label"]
        cells = [experiment["name"], experiment["status"], label, arms, experiment["created_at"]]
        typer.echo("  ".join(cells))


@service_command("decisions")
def client_decisions(
    service: "Client",
    name: Experiment,
    *,
    sort: Annotated[str, option("-made_at for the newest first, or made_at.")] = "-made_at",
    status: Annotated[str | None, option("pending, applied, expired or unobserved.")] = None,
    mode: Annotated[str | None, option("both, exploit or explore.")] = None,
    tag: Tag = None,
    most: Most = 100,
) -> None:
    """List the decisions of an experiment, one line of JSON each."""
    from itertools import islice

    filters: Any = _without_none(
        {"sort": sort, "status": status, "mode": mode, "tags": tags_of(tag)}
    )
    for decision in islice(service.iter_decisions(name, **filters), most):
        typer.echo(json.dumps(vars(decision), ensure_ascii=False))


@service_command("delete")
def client_delete(
    service: "Client",
    name: Annotated[str, argument("The experiment, which must be archived.")],
    confirm: Annotated[
        str | None, typer.Option(help="Its name again; asked for if not given.", metavar="NAME")
    ] = None,
) -> None:
    """Delete an experiment that was archived long enough ago, with its whole log."""
    if confirm is None:
        confirm = typer.prompt("Type its name to delete it")
    show(service.request("DELETE", experiment_path(name), params={"confirm": confirm}))


@service_command("learner")
def client_learner(
    service: "Client",
    name: Experiment,
    file: Annotated[Path, argument("A new file, for Learner.load or create --learner.")],
    force: Annotated[bool, option("Replace FILE if it exists.", "--force")] = False,
) -> None:
    """Write what an experiment has learned, with its random stream, to a file."""
    from ..base.files import write_atomically

    check_new(file, force=force)
    write_atomically(file, service.learner(name), overwrite=force)
    typer.echo(f"Written to {file}")


@service_command("replay", arguments=("file",))
def client_replay(
    service: "Client",
    name: Experiment,
    file: Annotated[
        Path, argument("A log: .csv, .parquet, or .jsonl with an object on each line.")
    ],
    unrandomised: Annotated[
        bool,
        typer.Option(
            "--unrandomised",
            help=(
                "Take all propensities as 1: only if every arm was seen in every round, "
                "or the policy keeps means."
            ),
        ),
    ] = False,
) -> None:
    """Let an experiment learn from a log. The same log again learns nothing twice."""
    suffix = file.suffix.lower()
    if suffix not in LOG_TYPES:
        rule = f"its suffix names no format; known are {', '.join(LOG_TYPES)}"
        raise ParameterError.of("file", str(file), rule, "use one of them")
    learned = service.request(
        "POST",
        f"{experiment_path(name)}/replay",
        params={"unrandomised": True} if unrandomised else {},
        content=file.read_bytes(),
        headers={"Content-Type": LOG_TYPES[suffix]},
    )
    show(learned)
