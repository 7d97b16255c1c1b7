"""`Client`, whose calls wait for the answer. `AsyncClient` has the same methods to await.

What both promise:

- While the service compiles a policy, which it does once, a call waits and gives the reason once.
- A request is repeated until it is answered, with waits that double and jitter. Every attempt to
  decide carries the same Idempotency-Key, so no decision is drawn twice.
- Feedback is never lost silently: it is delivered, kept in the outbox, or raised as
  `UndeliveredFeedback`.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar, Unpack, overload

import httpx

from ..decision import Arm
from ..learner.losses import Preference
from .base import BaseClient
from .errors import ServiceError, Undelivered
from .exchange import ApiRequest, Exchange, Received
from .requests import (
    PAGE,
    BudgetLimits,
    DecideOptions,
    DecisionFilters,
    ExperimentFilters,
    ExperimentSettings,
    GuardrailChanges,
    as_json,
    decision_params,
    decision_path,
    experiment_path,
    id_of,
)
from .results import FilePath, Flushed, Format, RemoteDecision, write_log

T = TypeVar("T")


class Client(BaseClient[httpx.Client]):
    """A client whose calls wait for the answer. Threads may share one.

    Args:
        url: the address of the service, such as "http://127.0.0.1:8000".
        key: an API key; None takes the environment variable DECOUPLED_KEY, and no key if that is
            not set.
        outbox: where feedback waits while the service is unreachable: an `Outbox`, or the path of
            one that survives the program. With None, such feedback raises `UndeliveredFeedback`.
        retries: how often to retry, and how long to wait; None for `Retries()`.
        notify: called with the reason when a call waits for a policy to be compiled; None logs it
            as a warning.
        timeout: seconds for one attempt.
        verify: whether to check the certificate of an https address; a path names a certificate to
            trust.

    >>> client = Client("http://127.0.0.1:8000", outbox="outbox")
    >>> client
    Client('http://127.0.0.1:8000')
    """

    def _open(self, **options: Any) -> httpx.Client:
        return httpx.Client(**options)

    # Experiments

    def create(
        self,
        name: str,
        *,
        arms: Sequence[Arm] | int | None = None,
        **settings: Unpack[ExperimentSettings],
    ) -> dict[str, Any]:
        """Create an experiment, and wait until its policy is compiled.

        If the experiment exists with the same settings, it is returned as it is.

        Args:
            name: the experiment's name: 1 to 100 letters, digits, dots, dashes and underscores, a
                letter or digit first.
            arms: the names of the arms, or their number; None only if a `learner` brings them.
            **settings: everything else that can be set, each with a default of the service: see
                `ExperimentSettings`.

        Returns:
            The experiment: its settings, arms and status.

        Raises:
            Conflict: if it exists with other settings.
            Invalid: if the service rejects a setting; the message names it.

        >>> import decoupled as dc
        >>> client.create("prompts", arms=["short", "long"], policy=dc.FTPL(alpha=3.0))["status"]
        'ready'
        """
        return self._run(self._calls.create(name, arms=arms, **settings))

    def experiment(self, name: str) -> dict[str, Any]:
        """Return one experiment: its settings, arms and status.

        Args:
            name: the name of the experiment.

        Raises:
            NotFound: if there is no such experiment.

        >>> client.experiment("models")["arms"]
        ['small', 'medium', 'large']
        """
        answer: dict[str, Any] = self.request("GET", experiment_path(name))
        return answer

    def iter_experiments(self, **filters: Unpack[ExperimentFilters]) -> Iterator[dict[str, Any]]:
        """Yield every experiment, page after page.

        Args:
            **filters: which experiments, and in which order: see `ExperimentFilters`.

        >>> [each["name"] for each in client.iter_experiments(prefix="mod")]
        ['models']
        """
        params: dict[str, Any] = {"limit": PAGE, **filters}
        while True:
            page = self.request("GET", "/v1/experiments", params=params)
            yield from page["experiments"]
            if page["next"] is None:
                return
            params["after"] = page["next"]

    def iter_decisions(
        self, name: str, **filters: Unpack[DecisionFilters]
    ) -> Iterator[RemoteDecision]:
        """Yield every decision of an experiment, page after page.

        Args:
            name: the name of the experiment.
            **filters: which decisions, and in which order: see `DecisionFilters`.

        >>> made = client.decide("models", count=3)
        >>> ids = [decision.id for decision in made]
        >>> [each.id for each in client.iter_decisions("models", sort="made_at")] == ids
        True
        """
        params = decision_params(filters)
        while True:
            page = self.request("GET", f"{experiment_path(name)}/decisions", params=params)
            yield from map(RemoteDecision.of, page["decisions"])
            if page["next"] is None:
                return
            params["after"] = page["next"]

    def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms to an experiment.

        Args:
            name: the name of the experiment.
            arms: the names of the new arms.

        Returns:
            The experiment with its new list of arms.

        >>> client.add_arms("models", ["huge"])["arms"]
        ['small', 'medium', 'large', 'huge']
        """
        answer: dict[str, Any] = self.request(
            "POST", f"{experiment_path(name)}/arms", json={"arms": list(arms)}
        )
        return answer

    def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms: no later decision names them.

        Args:
            name: the name of the experiment.
            arms: the names of the arms to retire; at least two others must stay.

        Returns:
            The experiment with its new list of arms.

        >>> client.retire_arms("models", ["small"])["arms"]
        ['medium', 'large']
        """
        answer: dict[str, Any] = self.request(
            "POST", f"{experiment_path(name)}/arms/retire", json={"arms": list(arms)}
        )
        return answer

    # Guardrails and budgets

    def change_guardrails(self, name: str, **changes: Unpack[GuardrailChanges]) -> dict[str, Any]:
        """Change what is served, whatever the policy draws.

        Args:
            name: the name of the experiment.
            **changes: the rules to change; None removes a rule: see `GuardrailChanges`.

        Returns:
            The experiment with its guardrails as they are now.

        >>> client.change_guardrails("models", floors={"small": 0.1})["guardrails"]["floors"]
        {'small': 0.1}
        """
        answer: dict[str, Any] = self.request(
            "PATCH", f"{experiment_path(name)}/guardrails", json=as_json(changes)
        )
        return answer

    def pin(self, name: str, arm: Arm) -> dict[str, Any]:
        """Exploit this arm in every decision from now on: the kill switch.

        Exploring and learning continue.

        Args:
            name: the name of the experiment.
            arm: the arm to exploit.

        >>> client.pin("models", "small")["guardrails"]["pinned"]
        'small'
        """
        return self.change_guardrails(name, pinned=arm)

    def unpin(self, name: str) -> dict[str, Any]:
        """Let the policy choose again.

        Args:
            name: the name of the experiment.

        >>> client.unpin("models")["guardrails"]["pinned"]
        """
        return self.change_guardrails(name, pinned=None)

    def set_budget(self, name: str, **limits: Unpack[BudgetLimits]) -> dict[str, Any]:
        """Set how much may be explored; without limits, as much as is asked for.

        Args:
            name: the name of the experiment.
            **limits: the limits, in place of all that were set before: see `BudgetLimits`.

        >>> client.set_budget("models", share=0.01)["budget"]["share"]
        0.01
        """
        answer: dict[str, Any] = self.request(
            "PUT", f"{experiment_path(name)}/budget", json=as_json(limits)
        )
        return answer

    # Decisions

    @overload
    def decide(
        self, name: str, *, count: None = None, **options: Unpack[DecideOptions]
    ) -> RemoteDecision: ...
    @overload
    def decide(
        self, name: str, *, count: int, **options: Unpack[DecideOptions]
    ) -> list[RemoteDecision]: ...
    def decide(
        self, name: str, *, count: int | None = None, **options: Unpack[DecideOptions]
    ) -> RemoteDecision | list[RemoteDecision]:
        """Return a decision, or a list of decisions.

        Args:
            name: the name of the experiment.
            count: how many decisions to make; None returns one decision, and not a list.
            **options: how to decide: see `DecideOptions`.

        Raises:
            NotFound: if there is no such experiment.
            Conflict: if the experiment is archived.
            Unreachable: if no attempt got an answer.

        >>> decision = client.decide("models", available=["small", "large"])
        >>> decision.exploit in ("small", "large")
        True
        >>> len(client.decide("models", count=3))
        3
        """
        return self._run(self._calls.decide(name, count, **options))

    def decision(self, id: str) -> RemoteDecision:
        """Return a decision with its present status.

        Args:
            id: the id of the decision.

        Raises:
            NotFound: if there is no such decision.

        >>> made = client.decide("models")
        >>> client.decision(made.id).status
        'pending'
        """
        return self._run(self._calls.decision(id))

    def feedback(
        self,
        decision: RemoteDecision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
        preference: Preference | None = None,
        judged: float | Preference | None = None,
        position: float | None = None,
        cost: float | None = None,
    ) -> RemoteDecision | None:
        """Send the loss, or the reward, of the arm that a decision *explored*.

        Give exactly one of `loss`, `reward` and `preference`. The same feedback twice counts once.
        In an experiment with labels, give `judged`, and one of them as the label if
        `decision.label` is true and you know it already.

        Args:
            decision: the decision, or its id.
            loss: the loss of the explored arm, within the experiment's loss range.
            reward: its reward, in place of the loss: the mirror image of the loss within that
                range.
            arm: the arm whose loss it is: the service rejects any but the explored arm. None for no
                check.
            preference: which of the two arms did better, for an experiment of
                feedback="preference".
            judged: what a judge says: a loss, or a preference where these are the feedback. Only in
                an experiment with labels.
            position: how much the judge preferred what it saw first, from -1 to 1; 0 for a tie.
                None if that is not known.
            cost: what the look and its judgement really cost, for a budget of money. None if that
                is not known.

        Returns:
            The decision, or None if the feedback went to the outbox.

        Raises:
            Conflict: if the decision has another loss already, or was made to exploit only.
            Gone: if its deadline has passed.
            Invalid: if the loss is outside the range, or `arm` is not the explored arm.
            UndeliveredFeedback: if the service cannot be reached and there is no outbox.

        >>> decision = client.decide("models")
        >>> client.feedback(decision, loss=0.25, arm=decision.explore).status
        'applied'
        """
        item = Undelivered(id_of(decision), loss, reward, arm, preference, judged, position, cost)
        return self._run(self._calls.feedback(item))

    def feedback_many(self, items: Sequence[Undelivered]) -> list[RemoteDecision | ServiceError]:
        """Send the losses of the explored arms of many decisions.

        Args:
            items: the feedback, an `Undelivered` for each decision.

        Returns:
            For each item, in order, the decision or the error.

        >>> decisions = client.decide("models", count=2)
        >>> results = client.feedback_many([Undelivered(each.id, loss=0.5) for each in decisions])
        >>> [result.status for result in results]
        ['applied', 'applied']
        """
        return self._run(self._calls.feedback_many(items))

    def label(
        self,
        decision: RemoteDecision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        preference: Preference | None = None,
    ) -> RemoteDecision:
        """Send the label of a judged decision that wants one: the true loss of the arm that it
        *explored*.

        Give exactly one of `loss`, `reward` and `preference`. The same label twice counts once. It
        does not go to an outbox.

        Args:
            decision: the decision, or its id.
            loss: the true loss of the explored arm.
            reward: its reward, in place of the loss.
            preference: which of the two arms did better, for an experiment of
                feedback="preference".

        Raises:
            Conflict: if it wants no label, was not judged, or has another label already.
            Gone: if it came after too many newer decisions: see `Labels.deadline`.

        >>> import decoupled as dc
        >>> made = client.create("judged", arms=["a", "b"], labels=dc.Labels(share=0.1))
        >>> decision = client.decide("judged")
        >>> decision.label                                    # the first 200 ask for a label
        True
        >>> client.feedback(decision, judged=0.25).status     # it awaits the label
        'pending'
        >>> client.label(decision, loss=1.0).status
        'applied'
        """
        item = Undelivered(id_of(decision), loss, reward, preference=preference)
        return self._run(self._calls.label(item))

    def keep_pair(
        self,
        decision: RemoteDecision | str,
        *,
        request: str,
        exploit: str,
        explore: str,
        title: str = "",
        low: float | None = None,
        high: float | None = None,
        keep_days: float = 7.0,
    ) -> dict[str, Any]:
        """Keep the two answers of a judged decision until a person has seen them.

        The decision awaits a label.

        Remove what is private first. No log, export or backup has them.

        Args:
            decision: the decision, or its id.
            request: what was asked, up to 100,000 characters, as each of the answers.
            exploit: the answer of the exploited arm.
            explore: the answer of the explored arm.
            title: what the person reads first.
            low: the loss if the explored answer is the better one; None for the lowest.
            high: the loss if it is the worse one; None for the highest.
            keep_days: days after which it is deleted, up to 365.

        Raises:
            Conflict: if the decision awaits no label.

        >>> import decoupled as dc
        >>> made = client.create("shown", arms=["a", "b"], labels=dc.Labels(share=0.1))
        >>> decision = client.decide("shown")
        >>> judged = client.feedback(decision, judged=0.25)
        >>> pair = client.keep_pair(decision, request="Hello?", exploit="Hello!", explore="Hi.")
        >>> pair["id"] == decision.id
        True
        """
        body: dict[str, Any] = {
            "title": title,
            "request": request,
            "exploit": exploit,
            "explore": explore,
        }
        body |= {"low": low, "high": high, "keep_days": keep_days}
        answer: dict[str, Any] = self.request(
            "PUT", f"{decision_path(id_of(decision))}/pair", json=body
        )
        return answer

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

    def state(
        self,
        name: str,
        *,
        context: Mapping[str, str | float | bool | Sequence[float] | None] | None = None,
    ) -> dict[str, Any]:
        """Return what an experiment has learned: probabilities, estimates, counts and the regret.

        Args:
            name: the name of the experiment.
            context: the context of the probabilities, for a contextual policy; None if nothing is
                known of the request.

        >>> [round(probability, 3) for probability in client.state("models")["exploration"]]
        [0.333, 0.333, 0.333]
        """
        params = {} if context is None else {"context": json.dumps(dict(context))}
        answer: dict[str, Any] = self.request(
            "GET", f"{experiment_path(name)}/state", params=params
        )
        return answer

    def verdict(self, name: str) -> dict[str, Any]:
        """Return which arm is best as far as the evidence decides it, with the mean loss of each
        arm and the regret.

        Everything holds at every moment at once, so look as often as you like, and stop whenever
        you like.

        Args:
            name: the name of the experiment.

        >>> client.verdict("models")["text"]
        'too early: there is no loss to judge by yet'
        """
        answer: dict[str, Any] = self.request("GET", f"{experiment_path(name)}/verdict")
        return answer

    def gate(
        self,
        name: str,
        arm: Arm,
        *,
        against: Arm | None = None,
        margin: float = 0.0,
        when: Literal["passed", "failed"] = "passed",
    ) -> dict[str, Any]:
        """Return whether an arm is shown to be no worse than others by more than a margin.

        Look as often as you like: the probability that it is ever wrong when you ask is at most the
        experiment's risk.

        Args:
            name: the name of the experiment.
            arm: the arm.
            against: the arm to compare it with; None for the incumbent, or else every other arm.
            margin: how much higher its mean loss may be; below 0: how much lower it must be.
            when: the state in which the gate is `open`: "passed", or "failed" to know when to roll
                back.

        >>> gate = client.gate("models", "large", against="small", margin=0.02)
        >>> gate["open"], gate["state"]
        (False, 'waiting')
        """
        # A gate that is not open is an answer, and no error.
        params: dict[str, Any] = {"arm": str(arm), "margin": margin, "when": when, "closed": "200"}
        if against is not None:
            params["against"] = str(against)
        answer: dict[str, Any] = self.request("GET", f"{experiment_path(name)}/gate", params=params)
        return answer

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
            name: the name of the experiment.
            file: the file to write.
            format: "csv" or "parquet"; None takes it from the file's suffix.
            overwrite: whether to replace an existing file; False raises a `FileExistsError`.
            tags: write only decisions that have all of these; None for all decisions.

        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "models.csv"
        >>> client.log("models", file)
        >>> file.read_text().split(",")[:3]
        ['id', 'seq', 'mode']
        """
        content = self._run(self._calls.log(name, file, format, tags))
        write_log(file, content, overwrite=overwrite)

    def learner(self, name: str) -> str:
        """Return what an experiment has learned, with its random stream.

        `Learner.from_json` reads this text.

        That learner continues bit for bit. Pending decisions are not part of it.

        Args:
            name: the name of the experiment.

        >>> import decoupled as dc
        >>> learner = dc.Learner.from_json(client.learner("models"))
        >>> learner.decide().explore == (client.decide("models")).explore
        True
        """
        return self._run(self._calls.learner(name))

    # Everything else

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send any request of the API, and return the JSON of its answer.

        Use it for what has no method here.

        It waits, tries again and raises errors like every other call. A lost answer is asked for
        again, so a request has to mean the same twice: for one that does not, such as a decision,
        give an `Idempotency-Key`.

        Args:
            method: the method of HTTP, such as "GET".
            path: the path, from "/v1/" on.
            params: the parameters of the query.
            json: the body, as JSON.
            content: the body, as bytes; give its `Content-Type` among the headers.
            headers: further headers.

        >>> client.request("POST", "/v1/experiments/models/archive")["status"]
        'archived'
        >>> audit = client.request("GET", "/v1/audit", params={"limit": 2})
        >>> [entry["action"] for entry in audit["entries"]]
        ['experiment.archive', 'experiment.create']
        """
        call = ApiRequest(method, path, json, dict(params or {}), dict(headers or {}), content)
        return self._run(self._calls.json(call))

    # Running

    def close(self) -> None:
        """Send everything in the outbox once more, and close the connections.

        Raises:
            UndeliveredFeedback: if feedback is left in an outbox that has no folder.

        >>> client.close()
        """
        try:
            self._run(self._calls.close())
        finally:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, exchange: Exchange[T]) -> T:
        reply: Received = None
        try:
            while True:
                reply = self._perform(exchange.send(reply))
        except StopIteration as end:
            result: T = end.value
            return result

    def _perform(self, step: ApiRequest | float) -> Received:
        if not isinstance(step, ApiRequest):
            time.sleep(step)
            return None
        try:
            return self._http.request(**vars(step))
        except httpx.TransportError as error:
            return error
