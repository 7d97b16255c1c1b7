"""Parameters that the compiler knows.

Which of several forms of a power is meant, say, is told by a parameter that stays as it is for a whole run. A
CPU foresees such a branch. A GPU takes it as quickly, but fetches its instructions past the code of the
forms that are not meant: with the common values written into the code, FTPL is a quarter faster there.
"""

from typing import Any

from .numba_later import overload

COMMON = (0.0, 1.0, 1.5, 2.0, 3.0, 4.0)
OPEN = float("nan")  # stands for a parameter that is not pinned


def common_values(params: Any, names: tuple[str, ...]) -> tuple[float, ...]:
    """For every parameter its value, if it is among those named and is a common one, else `OPEN`."""
    told = zip(params._fields, params, strict=True)
    return tuple(value if name in names and value in COMMON else OPEN for name, value in told)


def pinned(params: Any, values: tuple[float, ...]) -> Any:
    """The same parameters; in compiled code those that `common_values` gave are constants."""
    return params


@overload(pinned)
def _pinned(params: Any, values: Any) -> Any:
    # A tuple type is called with as many arguments as it has fields, which only text can say for any number.
    parts = [
        f"values[{i}] if values[{i}] == values[{i}] else params[{i}]" for i in range(len(params.types))
    ]
    scope: dict[str, Any] = {"kind": params.instance_class, "Any": Any}
    head = "def implementation(params: Any, values: Any) -> Any:"
    exec(f"{head}\n    return kind({', '.join(parts)})\n", scope)
    return scope["implementation"]
