"""MovieLens 100K as an environment: finding the data, reading it, and fitting an oracle to it.

The licence does not allow redistribution, so the data is not part of this package. It comes from a local copy or from
its publisher. If neither is available there is a generated stand-in of the same shape, labelled as such.

Harper, F. M. and Konstan, J. A. (2015). The MovieLens datasets: history and context. ACM Transactions on Interactive
Intelligent Systems 5(4).
"""

from .files import Source, find
from .oracle import Oracle, fit_oracle, fitted
from .ratings import Ratings, parse_ratings, read_titles, stand_in

__all__ = [
    "Oracle", "Ratings", "Source", "find", "fit_oracle", "fitted", "parse_ratings",
    "read_titles", "stand_in",
]  # fmt: skip
