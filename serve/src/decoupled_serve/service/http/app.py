"""The service as an ASGI application."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import Route

from decoupled import __version__

from ..console import PATHS, console_routes
from ..service import DecisionService
from .admission import Admission, Limits
from .framework import completed, install
from .observe.metrics import Metrics
from .routes.decisions import FastRoutes, decision_routes
from .routes.experiments import experiment_routes
from .routes.logs import log_routes, moving_routes
from .routes.ofrep import ofrep_routes
from .routes.operations import DOCUMENT, audit_routes, document_routes, operation_routes
from .routes.pairs import pair_routes
from .transport.gateway import PUBLIC, Gateway

if TYPE_CHECKING:
    from .observe.telemetry import Telemetry

ABOUT = """Decisions over HTTP, with nothing lost: ask for a decision, use its `exploit` arm, try its `explore` arm,
and send back **the loss of the explored arm**. What is acknowledged is on disk.

**Versions.** Before version 1.0 a release may change what is here, and the changelog says so. Routes and fields may be
added at any time, so ignore fields that you do not know."""

# Seconds that a request waits for a policy to be loaded. Compiling one takes longer than clients wait.
PATIENCE = 2.0


def create_app(
    service: DecisionService,
    *,
    open_to_all: bool = False,  # serve without keys as long as the store has none; only for loopback
    limits: Limits | None = None,
    backups: Path | None = None,  # the folder for `POST /v1/backups`; None to refuse them
    patience: float = PATIENCE,  # seconds that a request waits for a policy that is being compiled
    metrics_experiments: int = 0,  # how many experiments have metrics of their own
    telemetry: "Telemetry | None" = None,  # `telemetry.traced` must be put around the application
    mirror: str | None = None,  # the experiment of the mirror that the service belongs to
) -> Gateway:
    """The application over a service, which the caller closes after the last response."""
    limits = limits or Limits()
    service.patience = patience
    service.watch_experiments(metrics_experiments)

    app = FastAPI(
        title="decoupled",
        version=__version__,
        description=ABOUT,
        openapi_url=None,  # the framework's own pages would load scripts from another site
        redirect_slashes=False,
    )
    admission = Admission(service.keys, limits, open_to_all=open_to_all)
    metrics = Metrics(service)
    fast = (FastRoutes if telemetry is None else telemetry.routes)(service, admission)
    if telemetry is not None:
        telemetry.watch(service, metrics)
    install(app)
    routers = (
        experiment_routes(service),
        decision_routes(service, fast),
        log_routes(service, limits),
        moving_routes(service, limits),
        operation_routes(service, metrics.text, backups, mirror),
        audit_routes(service),
        pair_routes(service),
        ofrep_routes(service, admission),
        console_routes(),
        document_routes(app),
    )
    for router in routers:
        app.include_router(router)

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            app.openapi_schema = completed(found)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
    public = PUBLIC | PATHS | {DOCUMENT}
    routes = [each for router in routers for each in router.routes if isinstance(each, Route)]
    return Gateway(app, fast, admission, metrics, limits=limits, routes=routes, public=public)
