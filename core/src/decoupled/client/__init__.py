"""Python clients of the decision service. They import nothing of the server but its errors."""

from .aio import AsyncClient
from .errors import UndeliveredFeedback, Unreachable
from .exchange import Retries
from .guardrails import BudgetLimits, GuardrailChanges
from .outbox import Outbox, Undelivered
from .requests import DecideOptions, DecisionFilters, ExperimentFilters, ExperimentSettings
from .results import DecisionPage, Flushed, RemoteDecision
from .sync import Client

__all__ = [
    "AsyncClient",
    "BudgetLimits",
    "Client",
    "DecideOptions",
    "DecisionFilters",
    "DecisionPage",
    "ExperimentFilters",
    "ExperimentSettings",
    "Flushed",
    "GuardrailChanges",
    "Outbox",
    "RemoteDecision",
    "Retries",
    "Undelivered",
    "UndeliveredFeedback",
    "Unreachable",
]
