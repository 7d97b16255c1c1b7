"""Optional dependencies: what each extra brings, and an error that names a missing one's extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ..errors import Message, MissingExtraError

# The modules that each extra brings; one that several bring is listed with the smallest of them.
_MODULES = {
    "cli": ("typer", "rich"),
    "client": ("httpx",),
    "conic": ("scs",),
    "dask": ("dask", "distributed"),
    "jit": ("numba", "llvmlite"),
    "lab": ("markupsafe",),
    "litellm": ("litellm",),
    "mcp": ("mcp", "mcp_types"),
    "otel": ("opentelemetry",),
    "parquet": ("pyarrow",),
    "plots": ("matplotlib", "plotly"),
    "postgres": ("psycopg",),
    "serve": (
        "apsw",
        "fastapi",
        "h11",
        "httptools",
        "prometheus_client",
        "pydantic",
        "starlette",
        "uvicorn",
    ),
    "simulate": ("scipy", "xarray", "pandas", "h5netcdf", "h5py", "jinja2"),
    "sklearn": ("sklearn",),
}
EXTRA_OF = {module: extra for extra, modules in _MODULES.items() for module in modules}


@contextmanager
def needed_for(purpose: str, otherwise: str = "") -> Iterator[None]:
    """Wrap imports of optional packages.

    If one is missing, the error says what needs it, its extra, and what else to do.

    >>> with needed_for("a plot"):
    ...     import matplotlib
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise (as_missing_extra(error, purpose, otherwise) or error) from None


def require(purpose: str, *modules: str) -> None:
    """Check that optional packages are installed, without loading them.

    >>> require("a plot", "matplotlib")
    """
    for module in modules:
        if find_spec(module) is None:
            with needed_for(purpose):
                raise ModuleNotFoundError(name=module)


def as_missing_extra(
    error: ModuleNotFoundError, purpose: str, otherwise: str = "", extras: str | None = None
) -> MissingExtraError | None:
    """The error that names the extra of a missing module; None if it belongs to no extra.

    Args:
        error: the error of the import.
        purpose: what needs the module.
        otherwise: what else to do.
        extras: all extras that the purpose needs; None for that of the module alone.
    """
    module = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(module)
    if extra is None:
        return None
    remedy = how_to_install(extras or extra)
    if otherwise:
        remedy += f", or {otherwise}"
    problem = f"{purpose}: needs the package {module}, which is not installed"
    return MissingExtraError(Message(problem, remedy))


def how_to_install(extras: str) -> str:
    """The command that adds extras, for an error.

    >>> how_to_install("plots")[:40]
    "pip install 'decoupled-bandits[plots]' ("
    """
    where = "with --find-links FOLDER if no index has its wheel, but a folder does"
    return f"pip install 'decoupled-bandits[{extras}]' ({where})"
