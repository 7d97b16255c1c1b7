"""`Client`, whose calls wait for the answer. `AsyncClient` has the same methods to await.

    with Client("http://127.0.0.1:8000") as client:
        client.put_experiment("models", policy=dc.FTPL.recommended(), arms=["small", "medium", "large"])
        decision = client.decide("models")
        serve(decision.exploit)
        client.feedback(decision, loss=loss_of(decision.explore))   # of the *explored* arm

What both promise:

- While the service compiles a policy, which it does once, a call waits and gives the reason once.
- A request is repeated until it is answered, with waits that double and jitter. Every attempt to decide carries
  the same Idempotency-Key, so no decision is drawn twice.
- Feedback is never lost silently: it is delivered, kept in the outbox, or raised as `UndeliveredFeedback`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

import httpx

from ...decision import Arm
from ...learner.preferences import Preference
from ..errors import ServiceError
from .base import BaseClient
from .exchange import Exchange, Reply, Request
from .guardrails import BudgetLimits, GuardrailChanges
from .log_file import FilePath, Format, type_of, write_log
from .outbox import Undelivered
from .requests import DecideOptions, DecisionFilters, ExperimentFilters, ExperimentSettings
from .results import Decision, DecisionPage, Flushed

T = TypeVar("T")


class Client(BaseClient[httpx.Client]):
    """A client whose calls wait for the answer. Threads may share one.

    Args:
        url: the address of the service.
        key: an API key; the environment variable DECOUPLED_KEY if not given.
        outbox: keeps feedback that cannot be delivered now: an `Outbox`, or the path of one that survives the
            program. Without an outbox such feedback raises `UndeliveredFeedback`.
        retries: how often to try, and how long to wait.
        notify: called with the reason when a call has to wait for a policy to be compiled; by default the
            reason is logged as a warning.
        timeout: seconds for one attempt.
        verify: False accepts any certificate; a path names one to trust.

    >>> client = Client("http://127.0.0.1:8000", outbox="outbox.jsonl")
    >>> client
    Client('http://127.0.0.1:8000')
    """

    def _open(self, **options: Any) -> httpx.Client:
        return httpx.Client(**options)

    # Experiments

    def put_experiment(
        self, name: str, *, arms: Sequence[Arm] | int | None = None, **settings: Unpack[ExperimentSettings]
    ) -> dict[str, Any]:
        """Create an experiment, and wait until its policy is compiled.

        The settings are `policy`, `loss_range`, `deadline_seconds`, `expired_loss`, `seed`, `demo`, `feedback`,
        `guardrails`, `budget`, `risk`, `drift` and `learner`: see `ExperimentSettings`. An experiment that exists with the same
        settings is returned as it is.

        >>> import decoupled as dc
        >>> client.put_experiment("prompts", arms=["short", "long"], policy=dc.FTPL(alpha=3.0))["status"]
        'ready'
        """
        return self._run(self._calls.put_experiment(name, arms=arms, **settings))

    def experiment(self, name: str) -> dict[str, Any]:
        """Return one experiment: its settings, arms and status.

        >>> client.experiment("models")["arms"]
        ['small', 'medium', 'large']
        """
        return self._run(self._calls.experiment(name))

    def experiments(
        self, after: str | None = None, limit: int = 100, **filters: Unpack[ExperimentFilters]
    ) -> dict[str, Any]:
        """Return a page of experiments; `next` is the `after` of the following page. See `ExperimentFilters`.

        >>> page = client.experiments()
        >>> [experiment["name"] for experiment in page["experiments"]], page["next"]
        (['models'], None)
        """
        return self._run(self._calls.experiments(after, limit, filters))

    def iter_experiments(self, **filters: Unpack[ExperimentFilters]) -> Iterator[dict[str, Any]]:
        """Yield every experiment, page after page; see `ExperimentFilters`.

        >>> [each["name"] for each in client.iter_experiments(prefix="mod")]
        ['models']
        """
        page = self.experiments(**filters)
        while True:
            yield from page["experiments"]
            if page["next"] is None:
                return
            page = self.experiments(page["next"], **filters)

    def decisions(
        self, name: str, after: str | None = None, limit: int = 100, **filters: Unpack[DecisionFilters]
    ) -> DecisionPage:
        """Return a page of decisions, the newest first; see `DecisionFilters`.

        >>> made = client.decide("models")
        >>> page = client.decisions("models", status="pending")
        >>> page.decisions == [made], page.next
        (True, None)
        """
        return self._run(self._calls.decisions(name, after, limit, filters))

    def iter_decisions(self, name: str, **filters: Unpack[DecisionFilters]) -> Iterator[Decision]:
        """Yield every decision of an experiment, page after page; see `DecisionFilters`.

        >>> made = client.decide("models", count=3)
        >>> [each.id for each in client.iter_decisions("models", sort="made_at")] == [each.id for each in made]
        True
        """
        page = self.decisions(name, **filters)
        while True:
            yield from page.decisions
            if page.next is None:
                return
            page = self.decisions(name, page.next, **filters)

    def delete(self, name: str, *, confirm: str) -> dict[str, Any]:
        """Delete an experiment that was archived long enough ago, with its log; `confirm` is its name again.

        >>> archived = client.archive("models")
        >>> try:
        ...     client.delete("models", confirm="models")
        ... except ServiceError as error:
        ...     print(error.status, "is kept for 30 days" in str(error))
        409 True
        """
        return self._run(self._calls.delete(name, confirm))

    def archive(self, name: str) -> dict[str, Any]:
        """End an experiment: it makes no more decisions, and still takes feedback.

        >>> client.archive("models")["status"]
        'archived'
        """
        return self._run(self._calls.archive(name))

    def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms to an experiment.

        >>> client.add_arms("models", ["huge"])["arms"]
        ['small', 'medium', 'large', 'huge']
        """
        return self._run(self._calls.add_arms(name, arms))

    def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms: no later decision names them.

        >>> client.retire_arms("models", ["small"])["arms"]
        ['medium', 'large']
        """
        return self._run(self._calls.retire_arms(name, arms))

    # Guardrails and budgets

    def change_guardrails(self, name: str, **changes: Unpack[GuardrailChanges]) -> dict[str, Any]:
        """Change what is served, whatever the policy draws; see `GuardrailChanges`.

        >>> client.change_guardrails("models", floors={"small": 0.1})["guardrails"]["floors"]
        {'small': 0.1}
        """
        return self._run(self._calls.change_guardrails(name, changes))

    def pin(self, name: str, arm: Arm) -> dict[str, Any]:
        """Exploit this arm in every decision from now on: the kill switch. Exploring and learning go on.

        >>> client.pin("models", "small")["guardrails"]["pinned"]
        'small'
        """
        return self._run(self._calls.change_guardrails(name, {"pinned": arm}))

    def unpin(self, name: str) -> dict[str, Any]:
        """Let the policy choose again.

        >>> client.unpin("models")["guardrails"]["pinned"]
        """
        return self._run(self._calls.change_guardrails(name, {"pinned": None}))

    def set_down(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Set the arms that are down, such as those that fail a health check; all others are up.

        >>> client.set_down("models", ["large"])["guardrails"]["down"]
        ['large']
        """
        return self._run(self._calls.set_down(name, arms))

    def set_budget(self, name: str, **limits: Unpack[BudgetLimits]) -> dict[str, Any]:
        """Set how much may be explored; without limits, as much as is asked for. See `BudgetLimits`.

        >>> client.set_budget("models", share=0.01)["budget"]["share"]
        0.01
        """
        return self._run(self._calls.set_budget(name, limits))

    # Decisions

    @overload
    def decide(self, name: str, *, count: None = None, **options: Unpack[DecideOptions]) -> Decision: ...
    @overload
    def decide(self, name: str, *, count: int, **options: Unpack[DecideOptions]) -> list[Decision]: ...
    def decide(
        self, name: str, *, count: int | None = None, **options: Unpack[DecideOptions]
    ) -> Decision | list[Decision]:
        """Return a decision, or a list of `count` decisions.

        The options are `mode`, `available`, `key`, `tags` and `baseline`: see `DecideOptions`.

        >>> decision = client.decide("models", available=["small", "large"])
        >>> decision.exploit in ("small", "large")
        True
        >>> len(client.decide("models", count=3))
        3
        """
        found: Decision | list[Decision] = self._run(self._calls.decide(name, count, **options))
        return found

    def decision(self, id: str) -> Decision:
        """Return a decision with its present status.

        >>> made = client.decide("models")
        >>> client.decision(made.id).status
        'pending'
        """
        return self._run(self._calls.decision(id))

    def feedback(
        self,
        decision: Decision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
        preference: Preference | None = None,
    ) -> Decision | None:
        """Send the loss, or the reward, of the arm that a decision *explored*.

        Args:
            decision: the decision, or its id.
            loss: the loss of the explored arm.
            reward: its reward, in place of the loss.
            arm: the arm whose loss it is, as a safeguard: the service refuses any but the explored arm.
            preference: which of the two arms did better, "explore", "exploit" or "tie", in place of a number; for an
                experiment that was created with feedback="preference".

        Returns:
            The decision, or None if the feedback went to the outbox.

        >>> decision = client.decide("models")
        >>> client.feedback(decision, loss=0.25, arm=decision.explore).status
        'applied'
        """
        return self._run(self._calls.feedback(decision, loss, reward, arm, preference))

    def feedback_many(self, items: Sequence[Undelivered]) -> list[Decision | ServiceError]:
        """Send the losses of the explored arms of many decisions; return a decision or an error for each.

        >>> decisions = client.decide("models", count=2)
        >>> results = client.feedback_many([Undelivered(each.id, loss=0.5) for each in decisions])
        >>> [result.status for result in results]
        ['applied', 'applied']
        """
        return self._run(self._calls.feedback_many(items))

    def flush(self) -> Flushed:
        """Send everything in the outbox.

        >>> decision = client.decide("models")
        >>> client.outbox.add(Undelivered(decision.id, loss=0.25))
        >>> flushed = client.flush()
        >>> len(flushed.delivered), flushed.left
        (1, 0)
        """
        return self._run(self._calls.flush())

    # Results

    def state(self, name: str) -> dict[str, Any]:
        """Return what an experiment has learned: probabilities, estimates, counts and the regret.

        >>> [round(probability, 3) for probability in client.state("models")["exploration"]]
        [0.333, 0.333, 0.333]
        """
        return self._run(self._calls.state(name))

    def verdict(self, name: str) -> dict[str, Any]:
        """Return which arm is best, as far as that is decided, with the mean loss of each arm and the regret.

        All of it holds at every moment at once: look as often as you like, and stop when you like.

        >>> client.verdict("models")["text"]
        'too early: nothing was observed'
        """
        return self._run(self._calls.verdict(name))

    def history(self, name: str, points: int = 200) -> dict[str, Any]:
        """Return counts and mean losses, with their intervals, at up to `points` points of the log.

        >>> decision = client.decide("models")
        >>> client.history("models")["decisions"]
        [1]
        """
        return self._run(self._calls.history(name, points))

    def evaluation(self, name: str, *, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the off-policy value of every arm and of what was exploited, each with its interval.

        With `tags`, only decisions that have all of them count.

        >>> client.evaluation("models")["observed"]
        0
        """
        return self._run(self._calls.evaluation(name, tags))

    def audit(
        self,
        subject: str | None = None,
        *,
        action: str | None = None,
        tenant: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> dict[str, Any]:
        """Return who changed what, newest first; `next` is the `before` of the following page. Needs an admin key.

        Args:
            subject: only changes of this experiment, key (by its id) or file.
            action: only changes of this kind, such as "guardrails.change".
            tenant: only changes of this tenant; keys of the tenant `local` see all tenants.
            before: only changes before the one with this id.
            limit: how many changes a page has at most.

        >>> [entry["action"] for entry in client.audit("models")["entries"]]
        ['experiment.create']
        """
        return self._run(self._calls.audit(subject, action, tenant, before, limit))

    def log(
        self,
        name: str,
        file: FilePath,
        format: Format | None = None,
        *,
        overwrite: bool = True,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Write the log of an experiment to a file, whole or not at all.

        Args:
            name: the experiment.
            file: the file to write; an existing file is replaced.
            format: "csv" or "parquet"; by default the file's suffix decides.
            overwrite: False keeps an existing file and raises a `FileExistsError`.
            tags: write only decisions that have all of these.

        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "models.csv"
        >>> client.log("models", file)
        >>> file.read_text().split(",")[:3]
        ['id', 'seq', 'mode']
        """
        write_log(file, self._run(self._calls.log(name, file, format, tags)), overwrite)

    def learner(self, name: str) -> str:
        """Return what an experiment has learned, with its random stream, for `Learner.from_json`: it goes on bit for bit.

        Pending decisions are not part of it.

        >>> import decoupled as dc
        >>> learner = dc.Learner.from_json(client.learner("models"))
        >>> learner.decide().explore == (client.decide("models")).explore
        True
        """
        return self._run(self._calls.learner(name))

    def replay(self, name: str, file: FilePath, *, unrandomised: bool = False) -> dict[str, Any]:
        """Let an experiment learn from a log in a file: .csv, .parquet, or .jsonl with an object on each line.

        It needs the columns `explore`, `propensity` and `loss`. The same log again learns nothing twice. Read the
        `warnings` of the answer: they say what may be claimed.

        Args:
            name: the experiment.
            file: the log.
            unrandomised: take all propensities as 1; only if every arm was seen in every round, or if the policy keeps
                means.

        >>> import json, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> _ = file.write_text(json.dumps({"explore": "small", "propensity": 0.5, "loss": 0.3}))
        >>> (client.replay("models", file))["learned"]
        1
        """
        content = Path(file).read_bytes()
        return self._run(self._calls.replay(name, type_of(file), content, unrandomised))

    # Running

    def close(self) -> None:
        """Send everything in the outbox once more, and close the connections.

        Raises `UndeliveredFeedback` if feedback is left in an outbox that has no file.

        >>> client.close()
        """
        try:
            self._run(self._calls.close())
        finally:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, exchange: Exchange[T]) -> T:
        reply: Reply = None
        try:
            while True:
                reply = self._perform(exchange.send(reply))
        except StopIteration as end:
            result: T = end.value
            return result

    def _perform(self, step: Request | float) -> Reply:
        if not isinstance(step, Request):
            time.sleep(step)
            return None
        try:
            return self._http.request(
                step.method,
                step.path,
                json=step.json,
                params=step.params,
                headers=step.headers,
                content=step.content,
            )
        except httpx.TransportError as error:
            return error
