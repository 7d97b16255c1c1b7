"""Parameters as compile-time constants.

Some parameters choose between branches, such as the form of a power, and never change within a run. A CPU predicts
such a branch. A GPU still fetches instructions past the code of the other branches, and FTPL is a quarter faster there
with the common values compiled in.
"""

from typing import Any

from .lazy_numba import overload

COMMON = (0.0, 1.0, 1.5, 2.0, 3.0, 4.0)
OPEN = float("nan")  # marks a parameter that is not a constant


def common_values(params: Any, names: tuple[str, ...]) -> tuple[float, ...]:
    """The value of each parameter that is in `names` and has a common value; `OPEN` for the others."""
    named = zip(params._fields, params, strict=True)
    return tuple(value if name in names and value in COMMON else OPEN for name, value in named)


def pinned(params: Any, values: tuple[float, ...]) -> Any:
    """The same parameters; in compiled code, those in `values` are constants."""
    return params


@overload(pinned)
def _pinned(params: Any, values: Any) -> Any:
    # Numba needs a call with one argument for each field, so the source is generated.
    parts = [
        f"values[{i}] if values[{i}] == values[{i}] else params[{i}]" for i in range(len(params.types))
    ]
    scope: dict[str, Any] = {"kind": params.instance_class, "Any": Any}
    head = "def implementation(params: Any, values: Any) -> Any:"
    exec(f"{head}\n    return kind({', '.join(parts)})\n", scope)
    return scope["implementation"]
