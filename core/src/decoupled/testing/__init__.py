"""`check_policy`: the checks that every policy must pass, for your own policies.

The contract, in the order of the checks:

- **defined**: the class has all its parts, and its functions have the right arguments and results; they run as plain
  Python first, which notices undefined names and indices out of range;
- **sound**: arms, weights and propensities are valid, both laws are probabilities, and nothing in the state becomes NaN
  or infinite;
- **deciding**: `decide` changes only the random stream, and what the policy names in `kept`;
- **laws**: decisions have the laws that the policy states, by a chi-square test, and carry the propensity of their arm;
- **init**: it derives everything that decisions depend on from the learned rows;
- **saving**: a learner that is saved and loaded continues bit for bit;
- **unbiased**: if `cumulative` is "estimates", a decision adds the losses on average;
- **newcomers**: an arm that comes late and only loses is not the favourite; see `Policy.init_new_arms`;
- **retired**: feedback of a retired arm changes the other arms as usual;
- **parity**: the engine and the learner play the same arms;
- **endurance**: nothing breaks in many rounds of extreme losses.
"""

from collections.abc import Callable

from ..base.validation import whole_number
from ..errors import ParameterError
from ..policies import Policy
from .case import Case
from .engine import (
    check_defined,
    check_endurance,
    check_init,
    check_laws,
    check_newcomers,
    check_parity,
    check_retired,
    check_saving,
    check_sound,
    check_unbiased,
)

__all__ = [
    "CHECKS", "Case", "check_defined", "check_endurance", "check_init", "check_laws", "check_newcomers",
    "check_parity", "check_policy", "check_retired", "check_saving", "check_sound", "check_unbiased",
]  # fmt: skip

CHECKS: tuple[Callable[[Case], None], ...] = (
    *(check_defined, check_sound, check_laws, check_init, check_saving, check_unbiased),
    *(check_newcomers, check_retired, check_parity, check_endurance),
)


def check_policy(policy: Policy, *, arms: int = 5, rounds: int = 100_000, seed: int = 0) -> None:
    """Check that a policy keeps the contract in `decoupled.testing`; raise `ContractError`, an AssertionError, if not.

    All draws are seeded, so the result is always the same. It takes a few seconds, most of them to compile. Passing is
    no proof: also compare your policy with a slow, simple version of it.

    Args:
        policy: the policy with its parameters.
        arms: the number of arms, at least two.
        rounds: the number of rounds with extreme losses; at most 10,000 for a policy in plain Python.
        seed: the seed of all draws.

    >>> import decoupled as dc
    >>> dc.testing.check_policy(dc.FollowTheLeader(), rounds=1_000)
    """
    given: object = policy
    if isinstance(given, type) and issubclass(given, Policy):
        rule, remedy = "is a class", f"give a policy with its parameters: {given.__name__}(...)"
        raise ParameterError.of("policy", given, rule, remedy)
    if not isinstance(given, Policy):
        raise ParameterError.of("policy", given, "is not a policy", "for example dc.FTPL()")
    case = Case(
        policy,
        whole_number("arms", arms, 2, "the default is 5"),
        whole_number("rounds", rounds, 1, "the default is 100,000"),
        whole_number("seed", seed, 0, "the default is 0"),
    )
    for check in CHECKS:
        case.call(f"the check of {check.__name__.removeprefix('check_')}", check, case)
