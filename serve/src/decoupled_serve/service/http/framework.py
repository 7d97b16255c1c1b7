"""Routes of the framework that parse JSON strictly and check roles, and its errors in the shape of all others."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, get_origin

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match

from decoupled.client import BadRequest, Invalid, MethodNotAllowed, NotFound, ServiceError
from decoupled.errors import shown

from .admission.auth import Access
from .models.problem_json import FAULT, PROBLEM, headers_of, log_fault, problem_of
from .models.strict_json import encoded, parsed
from .models.validation import invalid

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body, which must be strict JSON."""
        return parsed(await self.body())


class StrictRoute(APIRoute):
    """A route whose body is strict JSON, and which takes each of its query parameters once, and no others.

    A parameter that is declared as a list may be repeated.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, for a request that parses strictly."""
        handle = super().get_route_handler()
        known = {each.alias for each in self.dependant.query_params}
        lists = {
            each.alias
            for each in self.dependant.query_params
            if get_origin(each.field_info.annotation) is list
        }

        async def strict(request: Request) -> Response:
            given = [name for name, _ in request.query_params.multi_items()]
            for name in given:
                if name not in known:
                    names = ", ".join(sorted(known)) or "none"
                    raise Invalid(
                        f"{shown(name)}: is not a query parameter of this path; those are: {names}"
                    )
                if given.count(name) > 1 and name not in lists:  # which of them counts?
                    raise Invalid(f"{name}: is given {given.count(name)} times; give it once")
            try:
                return await handle(_StrictRequest(request.scope, request.receive))
            except RequestValidationError as error:
                raise invalid(error.errors()) from None

        return strict


def access_of(request: Request) -> Access:
    """The access that the gateway granted to a request."""
    access: Access = request.scope["access"]
    return access


def _role(role: str) -> Any:
    async def required(request: Request) -> Access:
        access = access_of(request)
        access.require(role)
        return access

    return Depends(required)


# The access of a request, in a route that requires this role.
Reader = Annotated[Access, _role("read")]
Decider = Annotated[Access, _role("decide")]
Admin = Annotated[Access, _role("admin")]


def as_problem(error: ServiceError, problem: dict[str, Any] | None = None) -> Response:
    """An error as a response; `problem` is the content if it has another shape."""
    problem = problem or problem_of(error)
    headers = {name.decode(): value.decode() for name, value in headers_of(error)}
    return Response(encoded(problem), problem["status"], headers, PROBLEM.decode())


def install(app: FastAPI) -> None:
    """Give every error of the framework and of the service the same shape."""

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> Response:
        log_fault(error)
        return as_problem(error)

    @app.exception_handler(Exception)
    async def unexpected_error(request: Request, error: Exception) -> Response:
        return as_problem(ServiceError(FAULT))  # the gateway logs it

    @app.exception_handler(HTTPException)
    async def framework_error(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, ServiceError):
            return as_problem(error.__cause__)
        if error.status_code == 405:
            response = as_problem(
                MethodNotAllowed(f"{request.method}: this path does not take it; see Allow")
            )
            response.headers["Allow"] = ", ".join(_methods(app, request.scope["path"]))
            return response
        if error.status_code == 404:
            return as_problem(
                NotFound(f"path {request.url.path!r}: is not known; the paths are on the page /docs")
            )
        return as_problem(BadRequest("request: is not one that this service knows; see /v1/openapi.json"))


def _methods(app: FastAPI, path: str) -> list[str]:
    """The methods that a path takes; the framework knows only those of the first route that matches."""

    def taken(method: str) -> bool:
        scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
        return any(route.matches(scope)[0] is Match.FULL for route in app.routes)

    return [method for method in METHODS if taken(method)]
