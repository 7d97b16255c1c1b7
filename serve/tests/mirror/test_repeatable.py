"""Which requests are sent twice: if in doubt, none."""

import pytest

from decoupled_serve.mirror.config import CopyConfig
from decoupled_serve.mirror.repeatable import normal_path

RULES = CopyConfig(
    repeat=("GET /*", "POST /v1/search"), skip=("GET /logout", "* /admin/*"), dry_run_header="X-Dry-Run"
).rules()


@pytest.mark.parametrize(
    "path",
    [
        b"/logout", b"/log%6Fut", b"/LOGOUT", b"/LogOut/", b"/logout/", b"/logout;x=1", b"/logout;", b"/x/..;/logout",
        b"/x/../logout", b"/./logout", b"//logout", b"/x/%2e%2e/logout", b"/%2e/logout", b"/x%2f..%2flogout",
        b"/logout%00", b"/logout%20", b"/logout%09", b"/%20logout", b"/logout%0a", b"/logout%3fx", b"/logout%23",
        b"/logout%3Bx", b"/%256cogout", b"/logout\\", b"/x\\..\\logout", b"/x%5c..%5clogout", b"/logout.",
        b"/logout#x", b"/%EF%BD%8Cogout", b"/lo%C5%BFgout/..", b"/logout%ff", b"/Admin/users", b"/ADMIN/",
    ],
)  # fmt: skip
def test_an_exception_cannot_be_evaded(path: bytes) -> None:
    assert not RULES.allows("GET", path, [])


@pytest.mark.parametrize(
    "path", [b"/", b"/items", b"/items/", b"/my%20items", b"/a.b/.well-known/x", b"/100%25", b"/caf%C3%A9", b"/a+b,c"]
)  # fmt: skip
def test_what_every_upstream_reads_alike_is_mirrored(path: bytes) -> None:
    assert RULES.allows("GET", path, [])


def test_a_path_with_two_readings_has_no_normal_form() -> None:
    assert normal_path(b"/a%2Fb") is None
    assert normal_path(b"*") == "*"
    assert not RULES.allows("OPTIONS", b"*", [])


@pytest.mark.parametrize("path", [b"/v1/Search", b"/v1/search/", b"/v1/search;x", b"/v1/search%20"])
def test_what_is_allowed_is_allowed_to_the_letter(path: bytes) -> None:
    assert not RULES.allows("POST", path, [])
    assert RULES.allows("POST", b"/v1/search", [])


@pytest.mark.parametrize(
    ("values", "allowed"),
    [
        (["1"], True), (["yes"], True), ([""], False), (["0"], False), ([" "], False), (["False"], False),
        (["no"], False), (["off"], False), (["1", "0"], False), (["1", "1"], True),
    ],
)  # fmt: skip
def test_a_dry_run_says_so(values: list[str], allowed: bool) -> None:
    headers = [(b"x-dry-run", value.encode()) for value in values]
    assert RULES.allows("POST", b"/orders", headers) == allowed
    assert not RULES.allows("POST", b"/admin/orders", headers)


@pytest.mark.parametrize("name", [b"x-http-method-override", b"x-original-url"])
def test_a_request_that_may_be_another_one_is_not_mirrored(name: bytes) -> None:
    assert not RULES.allows("GET", b"/items", [(name, b"DELETE")])
