"""The paper's bounds and ours side by side."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .centred import optimal_c_exploit, theorem_a, theorem_b
from .ladder import theorem_t2
from .paper import theorem1
from .rungs import theorem_e2

if TYPE_CHECKING:
    import pandas as pd

_MOST = 2**62


def useful_from(bound: Callable[[int], float]) -> int:
    """The first horizon from which a bound is below the horizon. Above it, a bound says nothing, as losses are in [0,
    1].

    The bound must grow more slowly than the horizon.

    Args:
        bound: a function from a horizon to a bound. It must grow more slowly than the horizon.

    >>> from decoupled_lab import theory
    >>> theory.bounds.useful_from(lambda horizon: 10.0 * horizon**0.5)
    101
    """
    high = 1
    while bound(high) >= high and high < _MOST:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) >= middle else (low, middle)
    return high


def compare(arms: Sequence[int] = (2, 8, 64, 1024)) -> "pd.DataFrame":
    r"""The bounds against any adversary at $\alpha = 3$, by number of arms: the paper's and ours.

    Columns: what multiplies $\sqrt{KT}$ as $T$ grows, what does not depend on $T$, and the first horizon from which the
    bound is below the horizon. A constant times $\sqrt{KT}$ plus a term of lower order can be larger than the
    paper's bound at a short horizon, so read the three together.

    Args:
        arms: the numbers of arms to compare the bounds at.

    >>> from decoupled_lab import theory
    >>> theory.bounds.compare(arms=[8])["useful from"].tolist()
    [1244769, 4923, 523, 3597, 4727, 50123]
    """
    import pandas as pd

    rows = [row for count in arms for row in _rows(count)]
    columns = ["K", "bound", "of sqrt(K T)", "constant term", "useful from"]
    return pd.DataFrame(rows, columns=columns).set_index(["K", "bound"])


def _rows(arms: int) -> "list[tuple[int, str, float, float, int]]":
    best = optimal_c_exploit(arms)
    bounds: dict[str, Callable[[int], float]] = {
        "theorem 3.1, c = 2 (the paper)": lambda horizon: theorem1(horizon, arms),
        "theorem A, c = 2": lambda horizon: theorem_a(horizon, arms),
        f"theorem A, c = {best:.2f}": lambda horizon: theorem_a(horizon, arms, c_exploit=best),
        "theorem B, HALF, c_exploit = 0.5": lambda horizon: theorem_b(horizon, arms),
        "theorem E2, rounds, exact": lambda horizon: theorem_e2(horizon, arms),
        "theorem T2, Ladder()": lambda horizon: theorem_t2(horizon, arms),
    }
    return [(arms, name, *_parts(bound, arms), useful_from(bound)) for name, bound in bounds.items()]


def _parts(bound: Callable[[int], float], arms: int) -> tuple[float, float]:
    """The leading factor and the constant term of bound(T) = factor sqrt(K T) + constant, from two long horizons."""
    short, long = 10**12, 4 * 10**12
    root = math.sqrt(float(arms) * short)
    factor = (bound(long) - bound(short)) / root
    return factor, max(bound(short) - factor * root, 0.0)
