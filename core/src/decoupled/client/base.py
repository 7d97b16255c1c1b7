"""What both clients have in common: the address of a service, a key, and how to call it."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import httpx

from ..base.files import secret_variable
from ..errors import ParameterError
from .exchange import KEY_VARIABLE, Endpoint, Remedies, Retries
from .feedback import Outbox
from .requests import Operations
from .results import FilePath

_log = logging.getLogger("decoupled.client")
HTTP = TypeVar("HTTP")


class BaseClient(ABC, Generic[HTTP]):
    """The arguments of a client, and the operations that it offers."""

    remedies: ClassVar[Remedies] = Remedies()

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        outbox: Outbox | FilePath | None = None,
        retries: Retries | None = None,
        notify: Callable[[str], None] | None = None,
        timeout: float = 10.0,
        verify: bool | str = True,
    ) -> None:
        address = _checked_url(url)
        key = key or secret_variable(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # Error messages show the address, so leave out the user and password that it may hold.
        self.url = str(address.copy_with(userinfo=b"")).rstrip("/")
        self._has_key = bool(key)
        self.retries = retries or Retries()
        self.notify = notify or _log.warning
        self.outbox = outbox if isinstance(outbox, Outbox) or outbox is None else Outbox(outbox)
        # Certificates take 50 ms to load, and a plain address has none. Redirects are not followed.
        trust = verify if address.scheme == "https" else False
        self._http: HTTP = self._open(
            base_url=address, headers=headers, timeout=timeout, verify=trust
        )

    @abstractmethod
    def _open(self, **options: Any) -> HTTP:
        """Open the HTTP client."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"  # without the key

    @property
    def _calls(self) -> Operations:
        endpoint = Endpoint(self.url, self._has_key, self.retries, self.remedies, self.notify)
        return Operations(endpoint, self.outbox)


def _checked_url(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        rule = "must be an address that begins with http:// or https://"
        raise ParameterError.of("url", url, rule, "for example http://127.0.0.1:8000")
    return address
