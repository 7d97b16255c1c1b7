"""Python clients of the decision service. They import nothing of the server but its errors."""

from .aio import AsyncClient as AsyncClient
from .conversation import Decision as Decision
from .conversation import Flushed as Flushed
from .conversation import Retries as Retries
from .conversation import UndeliveredFeedback as UndeliveredFeedback
from .conversation import Unreachable as Unreachable
from .outbox import Outbox as Outbox
from .outbox import Undelivered as Undelivered
from .sync import Client as Client
