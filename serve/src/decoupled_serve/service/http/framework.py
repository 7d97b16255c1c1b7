"""What is added to the web framework: routes that parse strictly and check roles, errors of one shape, and its OpenAPI document."""

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, get_origin

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from decoupled.client import BadRequest, Invalid, MethodNotAllowed, NotFound, ServiceError
from decoupled.errors import shown

from .admission import Access
from .models.fields import Problem, encoded, parsed
from .models.problem_json import FAULT, PROBLEM, headers_of, invalid, log_fault, problem_of

_WHY = {
    400: "The request is not JSON, or not well-formed.",
    401: "The key is missing, unknown or revoked.",
    403: "The key's role does not allow this, or the request comes from another site's page.",
    404: "No such experiment, decision or path for this tenant.",
    405: "The path does not take this method.",
    408: "The body did not arrive in time.",
    409: "The same name, key or decision with other contents, or an archived experiment.",
    410: "Feedback after the decision's deadline. It is counted, and not applied.",
    413: "The body is larger than the limit.",
    415: "The body is not declared as JSON.",
    422: "A field is outside its domain, or the body does not have the required shape.",
    429: "More requests than the limit; Retry-After says how many seconds to wait.",
    503: "The store cannot write now, or the policy is being compiled. Nothing was done; try again.",
}
_REFERENCE = "#/components/schemas/{model}"
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_ALWAYS = (401, 403, 408, 413, 415, 422, 429, 503)
_EXAMPLES: dict[str, Any] = {
    "arm": "a", "control": "a", "drawn": "a", "exploit": "a", "explore": "b",
    "incumbent": "a", "loss_of": "b", "pinned": "a", "best": "a",
    "decision": "1f2e-7", "experiment": "checkout", "id": "1f2e-7", "key": "checkout", "name": "checkout", "next": "checkout",
    "archived_at": "2026-02-01T12:00:00.000000Z", "created_at": "2026-01-31T12:00:00.000000Z",
    "expires_at": "2026-01-31T13:00:00.000000Z", "made_at": "2026-01-31T12:00:00.000000Z",
    "settled_at": "2026-01-31T12:00:30.000000Z",
    "estimate": 0.25, "high": 0.5, "loss": 0.25, "low": 0.125, "propensity": 0.5, "weight": 2.0,
    "file": "decoupled-20260131T120000-000000000.db", "tenant": "shop", "title": "Conflict", "variant": "a",
}  # fmt: skip
RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}


def refusal(why: str, shape: type[Problem]) -> dict[str, Any]:
    """A refusal with this shape.

    >>> refusal("The body is too large.", Problem)["description"]
    'The body is too large.'
    """
    schema = {"$ref": _REFERENCE.format(model=shape.__name__)}
    return {"description": why, "content": {PROBLEM.decode(): {"schema": schema}}}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an operation: those given, and those that every operation has.

    >>> sorted(refusals(404))[:3]
    [401, 403, 404]
    """
    declared: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, *_ALWAYS}):
        declared[status] = refusal(_WHY[status], Problem)
        if status in (429, 503):
            declared[status]["headers"] = RETRY_AFTER
    return declared


def body_of(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """The request body of a route that bypasses the framework."""
    schema = model.model_json_schema(ref_template=_REFERENCE)
    return {
        "requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}
    }


def _name_bodies(document: dict[str, Any]) -> None:
    """Move the schemas that `body_of` wrote to the others, under the names of their models."""
    schemas = document["components"]["schemas"]
    operations = [each for path in document["paths"].values() for each in path.values()]
    for operation in operations:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            schema = content["schema"]
            if "title" in schema and "$ref" not in schema:
                schemas.update(schema.pop("$defs", {}))
                schemas[schema["title"]] = schema
                content["schema"] = {"$ref": _REFERENCE.format(model=schema["title"])}


def _illustrate(document: dict[str, Any]) -> None:
    """Give the fields of the schemas examples by their names, unless they have some."""
    for schema in document["components"]["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            kinds = {part.get("type") for part in (field, *field.get("anyOf", ()))}
            kind = "string" if isinstance(_EXAMPLES.get(name), str) else "number"
            if name in _EXAMPLES and kind in kinds and "examples" not in field:
                field["examples"] = [_EXAMPLES[name]]


def _summarise(document: dict[str, Any]) -> None:
    """Take the first sentence of each description as its summary, which the framework makes of a function's name."""
    for path in document["paths"].values():
        for operation in path.values():
            first, *rest = _SENTENCE.split(operation.pop("description"), maxsplit=1)
            operation["summary"] = first.removesuffix(".")
            if rest:
                operation["description"] = rest[0]
            for status, response in operation["responses"].items():
                if response["description"] == "Successful Response":  # the framework's words
                    response["description"] = "Done." if status == "200" else "Made, and on disk."


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The framework's document with the shape of problems and the authentication scheme."""
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas[Problem.__name__] = Problem.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):  # the framework's own shape, never sent
        schemas.pop(name, None)
    _name_bodies(document)
    _illustrate(document)
    _summarise(document)
    key = {"type": "http", "scheme": "bearer", "description": "A key that decoupled keys add made."}
    components["securitySchemes"] = {"key": key}
    document["security"] = [{"key": []}]
    return document


METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body, which must be strict JSON."""
        return parsed(await self.body())


class StrictRoute(APIRoute):
    """A route whose body is strict JSON, and which takes its query parameters, no others, and each once unless it is a list."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, for a request that parses strictly."""
        handle = super().get_route_handler()
        parameters = {
            each.alias: each.field_info.annotation for each in self.dependant.query_params
        }
        known = ", ".join(sorted(parameters)) or "none"

        async def strict(request: Request) -> Response:
            given = [name for name, _ in request.query_params.multi_items()]
            for name in given:
                if name not in parameters:
                    rule = "is not a query parameter of this path"
                    raise Invalid(f"{shown(name)}: {rule}; those are: {known}")
                # Which of several counts?
                if given.count(name) > 1 and get_origin(parameters[name]) is not list:
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
Labeller = Annotated[Access, _role("label")]


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
            found = MethodNotAllowed(f"{request.method}: this path does not take it; see Allow")
            response = as_problem(found)
            response.headers["Allow"] = ", ".join(_methods(app, request.scope["path"]))
            return response
        if error.status_code == 404:
            rule = f"path {request.url.path!r}: is not known"
            return as_problem(NotFound(f"{rule}; the paths are on the page /docs"))
        return as_problem(
            BadRequest("request: is not one that this service knows; see /v1/openapi.json")
        )


def _methods(app: FastAPI, path: str) -> list[str]:
    """The methods that a path takes; the framework knows only those of the first route that matches."""

    def taken(method: str) -> bool:
        scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
        return any(route.matches(scope)[0] is Match.FULL for route in app.routes)

    return [method for method in METHODS if taken(method)]
