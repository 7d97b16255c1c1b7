"""After warming, a learner calls nothing that is not yet compiled or loaded."""

from support.plain_python import ran

# In a process of its own: here, other tests may have compiled everything already.
SCRIPT = """
import os
from numba.core import event
import decoupled as dc
from decoupled.policies.warmup import is_warm, warm

def use(policy, arms):
    names = [f"arm {i}" for i in range(arms)]
    learner = policy.start(names, seed=2**100 + 7, loss_range=(-1.0, 3.0))
    late = learner.decide()
    for _ in range(3):
        learner.observe(learner.decide(), loss=2)
        learner.observe(learner.decide(available=learner.arms[:1]), reward=0.5)
    learner.exploit(available=learner.arms[1:])
    learner.explore()
    learner.replay([("arm 0", 0.5, 1.0)])
    learner.add_arms(["new"])
    learner.retire_arms([late.explore])
    learner.observe(late, loss=-1.0)
    learner = dc.Learner.from_json(learner.to_json())
    for available in (None, learner.arms[:2]):
        learner.exploitation_probabilities(available=available)
        learner.exploration_probabilities(available=available)
    learner.estimates()

def touched(work):
    # Numba takes this lock when a function is called with new types, to compile it or load it from
    # disk.
    with event.install_recorder("numba:compiler_lock") as found:
        work()
    return len(found.buffer)

recommended = dc.Ladder()
cases = [(dc.FollowTheLeader(), 3)]
if os.environ.get("DECOUPLED_TWINS") == "all":  # the others take a minute to compile
    cases += [(dc.CentredFTPL(), 3), (recommended, 3), (recommended, 5_000)]
for policy, arms in cases:
    assert not is_warm(policy, arms), policy
    assert touched(lambda: warm(policy, arms)) > 0, policy
    assert is_warm(policy, arms), policy
    assert touched(lambda: use(policy, arms)) == 0, policy
"""


def test_a_warm_policy_compiles_and_loads_nothing_more() -> None:
    # As where no machine code ships: else there is nothing to compile or to load.
    ran("-c", SCRIPT, DECOUPLED_NATIVE="off")
