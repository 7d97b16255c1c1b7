"""Python clients of the decision service, and the errors that the service answers with."""

from .aio import AsyncClient
from .errors import TEMPORARY, UndeliveredFeedback, Unreachable
from .exchange import Retries
from .guardrails import BudgetLimits, GuardrailChanges
from .outbox import Outbox, Undelivered
from .requests import DecideOptions, DecisionFilters, ExperimentFilters, ExperimentSettings
from .results import DecisionPage, Flushed, RemoteDecision
from .service_errors import (
    CLOSED,
    HOW_LONG,
    BadRequest,
    Compiling,
    Conflict,
    Forbidden,
    Gone,
    HeadersTooLarge,
    Invalid,
    Loading,
    MethodNotAllowed,
    NotCompiled,
    NotFound,
    ReplayError,
    ServiceError,
    StoreError,
    TooLarge,
    TooMany,
    TooSlow,
    Unauthorized,
    UnsupportedMedia,
    neither_or_both,
)
from .sync import Client

__all__ = [
    "CLOSED",
    "HOW_LONG",
    "TEMPORARY",
    "AsyncClient",
    "BadRequest",
    "BudgetLimits",
    "Client",
    "Compiling",
    "Conflict",
    "DecideOptions",
    "DecisionFilters",
    "DecisionPage",
    "ExperimentFilters",
    "ExperimentSettings",
    "Flushed",
    "Forbidden",
    "Gone",
    "GuardrailChanges",
    "HeadersTooLarge",
    "Invalid",
    "Loading",
    "MethodNotAllowed",
    "NotCompiled",
    "NotFound",
    "Outbox",
    "RemoteDecision",
    "ReplayError",
    "Retries",
    "ServiceError",
    "StoreError",
    "TooLarge",
    "TooMany",
    "TooSlow",
    "Unauthorized",
    "Undelivered",
    "UndeliveredFeedback",
    "Unreachable",
    "UnsupportedMedia",
    "neither_or_both",
]
