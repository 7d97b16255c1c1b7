"""The service as an ASGI application."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ... import __version__
from ..console import PATHS, console_routes
from ..desk import Desk
from .auth import Gate
from .fast_routes import HotRoutes
from .futures import Bridge
from .gateway import PUBLIC, Front
from .metrics import Metrics
from .openapi import completed
from .rate_limit import Limits
from .routes.access import access_routes
from .routes.decisions import decision_routes
from .routes.experiments import experiment_routes
from .routes.logs import reading_routes
from .routes.operations import operation_routes
from .routes.simulator import simulator_routes
from .strict_routes import install

ABOUT = """Decisions over HTTP that lose nothing: ask for a decision, use its `exploit` arm, try its `explore` arm,
and send back **the loss of the explored arm**. What is acknowledged is on disk."""

# Seconds that a request waits for a policy to be loaded; to compile one takes longer than a client waits.
PATIENCE = 2.0


def create_app(
    desk: Desk,
    *,
    open_to_all: bool = False,
    limits: Limits | None = None,
    backups: Path | None = None,
    patience: float = PATIENCE,
) -> Front:
    """The application over a desk.

    Args:
        desk: what does the work; whoever opened it closes it, after the last request was answered.
        open_to_all: serve without keys as long as the store has none; only for loopback.
        limits: what one caller may ask.
        backups: the folder for `POST /v1/backups`; None to refuse it.
        patience: for so many seconds a request waits for a policy that is being compiled.
    """
    limits = limits or Limits()
    desk.patience = patience

    app = FastAPI(
        title="decoupled",
        version=__version__,
        description=ABOUT,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    bridge = Bridge(desk)
    gate = Gate(desk, bridge, limits, open_to_all=open_to_all)
    hot = HotRoutes(desk, bridge, gate)
    metrics = Metrics(desk.counters)
    install(app)
    app.include_router(experiment_routes(desk, bridge))
    app.include_router(decision_routes(desk, bridge, gate, hot))
    app.include_router(reading_routes(desk, bridge))
    app.include_router(operation_routes(desk, bridge, metrics, backups))
    app.include_router(simulator_routes(gate))
    app.include_router(access_routes())
    app.include_router(console_routes())

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            app.openapi_schema = completed(found)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
    public = PUBLIC | PATHS
    return Front(app, hot, gate, metrics, limits=limits, public=public, loopback_only=open_to_all)
