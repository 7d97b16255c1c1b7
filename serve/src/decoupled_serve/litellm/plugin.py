"""The plug-in itself: what LiteLLM calls."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from pydantic import ValidationError

from decoupled.client import AsyncClient
from decoupled.errors import ParameterError
from decoupled.learner import Budget, Guardrails
from decoupled.policies import Ladder, Policy

from ..mirror.config import LossConfig, first_problem
from ..mirror.exchange import Answer
from ..mirror.judging import judge_of
from ..mirror.spending import Spending
from .deciding import Decider, InProcess, OnService, SavedSoon
from .routing import Mark, Routing, refuse_own_judge, refuse_unkept
from .shadow_arm import SHADOW, TARGETS, Fields, ShadowArm, answer_of, failure_of, metadata_of

MARK = "decoupled"  # its place in LiteLLM's notes about a request
_log = logging.getLogger("decoupled.litellm")
_numbers = count()


class Plugin(CustomLogger):  # type: ignore[misc] # LiteLLM is not there when types are checked
    """Serves each request of a model group from the exploited arm, and learns from a shadow sent to the explored one.

    Name it under `litellm_settings.callbacks`, and nowhere else. Whatever goes wrong here, the request is served.

    Args:
        group: the model group, the `model_name` of its deployments.
        arms: the `model` of those that are arms, two or more; the first serves until there is a decision. Shadows reach no
            other model.
        loss: what is learned, with the keys of a mirror's `[loss]`; costs are in dollars.
        save: the file of the learner in this process. What the shadows cost is beside it, in `<save>.spent`: on disk before
            a shadow is sent. A budget of money needs it.
        policy: the policy to run; that of the file or `Ladder()` by default. A contextual one finds its fields in the
            metadata that clients send.
        guardrails: rules about the arm that is served, for a learner in this process.
        seed: its seed, and that of the coin of `budget.share`; None draws fresh randomness.
        service: a decision service in place of a learner in this process: its address, or a client.
        experiment: the name of the experiment there; it is created if it does not exist.
        budget: how much may be explored; 5 % of the requests by default. Its `cost`, and the `ceiling` of the judge, are set
            aside for a shadow until real prices are known, and count if they never are.
        session_header: the header whose value is the key of a request; None for no keys.
        forward_headers: headers of clients that shadows carry; by default none, and no judge sees credentials.
        copy_fields: fields of requests that shadows carry besides those of OpenAI's API, such as "top_k".
        timeout: seconds that a shadow may take.
        concurrency: how many shadows may be on their way.
        folder: where the module of a judge in Python is.
        router: the router; that of the proxy by default.

    >>> plugin = Plugin("chat", ["openai/small", "openai/large"], {"judge": {"python": "judge:compare"}})
    >>> plugin.routing.arms, plugin.learner.round
    (['openai/small', 'openai/large'], 1)
    """

    def __init__(
        self,
        group: str,
        arms: Sequence[str],
        loss: LossConfig | Mapping[str, Any],
        *,
        save: str | Path | None = None,
        policy: Policy | None = None,
        guardrails: Guardrails | None = None,
        seed: int | None = None,
        service: str | AsyncClient | None = None,
        experiment: str = "litellm",
        budget: Budget | None = None,
        session_header: str | None = None,
        forward_headers: Sequence[str] = (),
        copy_fields: Sequence[str] = (),
        timeout: float = 60.0,
        concurrency: int = 16,
        folder: str | Path = ".",
        router: Any = None,
    ) -> None:
        super().__init__()
        self._given_router = router
        # LiteLLM takes two callbacks of a class for one if their public texts and numbers are the same.
        self.group, self.number = group, next(_numbers)
        file = None if save is None else Path(save)
        try:
            config = loss if isinstance(loss, LossConfig) else LossConfig.model_validate(dict(loss))
        except ValidationError as error:
            raise ParameterError(first_problem(error, "loss")) from None
        refuse_own_judge(config.judge, arms)
        limits = Budget(share=0.05) if budget is None else budget
        spent = None if file is None else file.with_name(f"{file.name}.spent")
        money = {name: getattr(limits, name) for name in ("total", "allowance")}
        refuse_unkept(
            {name: value for name, value in money.items() if value is not None}, config.judge, spent
        )
        if limits.decided_share is not None and service is not None:
            rule, remedy = "goes by a verdict in this process", "set it on the experiment there"
            raise ParameterError.of("budget.decided_share", limits.decided_share, rule, remedy)
        self.learner = None
        decider: Decider
        chosen: Any
        if service is None:
            decider = InProcess.of(policy, arms, file, guardrails=guardrails, seed=seed)
            self.learner, chosen = decider.learner, decider.learner.policy
        else:
            client = AsyncClient(service) if isinstance(service, str) else service
            chosen = policy or Ladder()
            create = partial(client.create, experiment, arms=list(arms), policy=chosen)
            decider = OnService(client, experiment, create)
        ceiling = 0.0 if config.judge is None else config.judge.dearest
        spending = Spending(limits, arms, spent, judge=ceiling, learner=self.learner, seed=seed)
        spending.meter.share(self.learner)  # an error comes now, and not with a request
        if spent is not None:
            spending.on_change = SavedSoon(spending.save).changed
        self.routing = Routing(
            [ShadowArm(arm, group, self._router, timeout) for arm in arms],
            decider,
            config,
            None if config.judge is None else judge_of(config.judge, Path(folder)),
            spending,
            session_header=session_header,
            context=(*chosen.segments, *chosen.numbers, *chosen.vectors)
            if chosen.contextual
            else (),
            forward_headers=forward_headers,
            copy_fields=copy_fields,
            concurrency=concurrency,
        )

    # What LiteLLM calls

    async def async_filter_deployments(
        self,
        model: str,
        healthy_deployments: list[dict[str, Any]],
        messages: list[Any] | None,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> list[dict[str, Any]]:
        """Narrow a shadow to its arm, and let a client's request prefer the arm that is exploited."""
        shadow = SHADOW.get()
        if shadow is not None:
            if shadow.group != self.group:  # of another plug-in
                return healthy_deployments
            return [
                each
                for each in healthy_deployments
                if (model, _arm(each)) == (self.group, shadow.arm)
            ]
        if model != self.group or request_kwargs is None:
            return healthy_deployments
        try:
            return await self._preferring(healthy_deployments, messages, request_kwargs)
        except Exception:
            _log.exception(
                "group %r: LiteLLM routes a request by itself, because of an error", model
            )
            return healthy_deployments

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Send the shadow of a request that was served, unless the answer came from a cache."""
        cost = kwargs.get("response_cost")
        self._ended(
            kwargs,
            end_time - start_time,
            lambda arm, took: answer_of(arm, response_obj, took, cost),
        )

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Send the shadow of a request that failed: if only others had one, the model that served would gain by failing."""
        error = kwargs.get("exception")
        self._ended(kwargs, end_time - start_time, lambda arm, took: failure_of(arm, took, error))

    # Helpers

    def _ended(
        self, kwargs: Fields, took: timedelta, answer: Callable[[str, float], Answer]
    ) -> None:
        notes = _notes(kwargs)
        if not notes:
            return
        mark = notes[MARK]
        try:
            if kwargs.get("cache_hit"):
                self.routing.not_served(mark)
                return
            target, arm = TARGETS.get(str(kwargs.get("call_type"))), str(notes.get("deployment"))
            self.routing.served(mark, target, partial(answer, arm, took.total_seconds()), arm)
        except Exception:
            _log.exception("decision %s: its shadow is not sent, because of an error", mark)

    async def _preferring(
        self, deployments: list[dict[str, Any]], messages: list[Any] | None, request: dict[str, Any]
    ) -> list[dict[str, Any]]:
        notes = metadata_of(request)
        if isinstance(notes.get(MARK), Mark) or "_target_order" in request:
            return deployments  # one decision a request: where a retry goes is up to LiteLLM
        healthy = {_arm(each) for each in deployments}
        available = [arm for arm in self.routing.arms if arm in healthy]
        if not available:
            return deployments
        arm, mark = await self.routing.choose(request, messages, available)
        notes[MARK] = mark
        return _ordered(deployments, arm)

    def _router(self) -> Any:
        if self._given_router is not None:
            return self._given_router
        return sys.modules["litellm.proxy.proxy_server"].llm_router  # the proxy may replace it


def _arm(deployment: Mapping[str, Any]) -> str:
    return str(deployment["litellm_params"]["model"])


def _ordered(deployments: list[dict[str, Any]], arm: str) -> list[dict[str, Any]]:
    """Deployments with orders that prefer those of an arm.

    LiteLLM picks among those with the lowest order *after* all its checks. So if the arm that is exploited does not pass
    one, such as the length of its context, another serves, where narrowing to this arm would make the request fail. Orders
    that the configuration gives come first; LiteLLM leaves out deployments without one where others have it.
    """
    given = [
        it["litellm_params"].get("order", it.get("model_info", {}).get("order"))
        for it in deployments
    ]
    some = any(order is not None for order in given)
    found = []
    for each, order in zip(deployments, given, strict=True):
        if not some or order is not None:
            place = 2 * (order or 0) + (0 if _arm(each) == arm else 1)
            each = {**each, "litellm_params": {**each["litellm_params"], "order": place}}
        found.append(each)
    return found


def _notes(kwargs: Fields) -> dict[str, Any]:
    """LiteLLM's notes about a request that has a mark; nothing if it has none."""
    parameters = kwargs.get("litellm_params") or {}
    for name in ("litellm_metadata", "metadata"):
        found = parameters.get(name)
        if isinstance(found, dict) and isinstance(found.get(MARK), Mark):
            return found
    return {}
