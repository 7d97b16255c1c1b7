"""`check_policy`, with the checks that every policy must pass; and `state_of`.

Use them for your own policies. `state_of` tells what one has learned.

The contract, in the order of the checks:

- **defined**: the class has all its parts, and its functions have the right arguments and results;
  they run as plain Python first, which notices undefined names and indices out of range;
- **sound**: arms, weights and propensities are valid, both laws are probabilities, and the state
  stays finite;
- **deciding**: `decide` changes only the random stream, and what the policy names in `kept`;
- **laws**: decisions have the laws that the policy states, by a chi-square test, and carry the
  propensity of their arm;
- **init**: it derives everything that decisions depend on from the learned rows;
- **saving**: a learner that is saved and loaded continues bit for bit;
- **unbiased**: if `cumulative` is "estimates", a decision adds the losses on average;
- **newcomers**: an arm that comes late and only loses is not the favourite; see
  `Policy.init_new_arms`;
- **retired**: feedback of a retired arm changes the other arms as usual;
- **parity**: the engine and the learner play the same arms;
- **endurance**: nothing breaks in many rounds of extreme losses.
"""

from ..base.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
