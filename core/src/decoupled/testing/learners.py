"""Checks of a policy's learner: saving, unbiased estimates, and arms that come and go."""

import numpy as np

from ..decision import Arm, Decision
from ..learner.learner import Learner
from ..policies import Forgetting
from .case import HISTORY, Case, place_of


def check_saving(case: Case) -> None:
    """Save and load a learner, and continue both with late feedback."""
    learner = case.learner(HISTORY)
    waiting = learner.decide(count=5)
    again = Learner.from_json(learner.to_json())
    case.expect(again.policy == case.policy, f"loaded from JSON it is {again.policy!r}")
    for losses in case.losses(HISTORY):
        one, two = learner.decide(), again.decide()
        case.expect(one == two, f"saved and loaded it decides {two}, and without that {one}")
        late = waiting.pop() if waiting else one
        for each in (learner, again):
            each.observe(late.id, loss=float(losses[place_of(late.explore)]))
    case.expect(again.to_json() == learner.to_json(), "saved and loaded, it learns something else")


def check_unbiased(case: Case) -> None:
    """Check what an observation adds to the estimates, in the mean over the explored arm."""
    forgets = isinstance(case.policy, Forgetting)  # a discounted sum is not unbiased
    learner = case.learner(HISTORY // 4)
    law = learner.exploration_probabilities()
    if not case.weighs() or forgets or learner.decide().propensity is None:
        return
    losses = np.linspace(0.2, 1.0, case.arms)
    mean = np.zeros(case.arms)
    found = {
        place_of(each.explore): each for _ in range(10) for each in learner.decide(count=case.draws // 10)
    }
    for each in learner.pending:  # one per arm is enough, and quick to save and load
        if found.get(place_of(each.explore)) is not each:
            learner.forget(each)
    saved, before = learner.to_json(), learner.estimates()
    for arm, decision in found.items():
        once = Learner.from_json(saved)
        once.observe(decision.id, loss=float(losses[arm]))
        mean += law[arm] * (once.estimates() - before)
    seen = sorted(found)
    message = f"losses of {losses[seen].tolist()} add {mean[seen].tolist()} to the estimates on average"
    case.expect(np.allclose(mean[seen], losses[seen], rtol=1e-7, atol=1e-9), message)


def check_newcomers(case: Case) -> None:
    """Add two arms that lose twice as much as the others, which all lose alike."""
    if isinstance(case.policy, Forgetting):  # it may have forgotten half of it: check its policy instead
        return
    learner, newcomers = case.policy.start(case.arms, case.seed), ["new", "newer"]
    learner.replay([(arm, 1.0 / case.arms, 0.5) for arm in learner.arms] * 40)
    learner.add_arms(newcomers)
    larger = case._replace(arms=len(learner.arms))
    _check_learner(larger, learner, "after arms came")
    chance = 1.0 / larger.arms
    learner.replay([(arm, chance, 1.0 if arm in newcomers else 0.5) for arm in learner.arms] * 20)
    law = learner.exploitation_probabilities()
    message = (
        f"arms lost 1/2 each time, two that came late lost 1, and the law is {law.round(3).tolist()}, they last; "
        "say in `init_new_arms` what a newcomer has learned"
    )
    case.expect((law[-2:] <= law[:-2].max()).all(), message)


def check_retired(case: Case) -> None:
    """Check the mean as in `check_unbiased`, with one arm retired and another added before the feedback."""
    learner = case.learner(HISTORY // 4)
    learner.add_arms(["spare"])
    places, law = list(learner.arms), learner.exploration_probabilities()
    found: dict[Arm, Decision] = {}
    for _ in range(10_000):
        decision = learner.decide()
        if found.setdefault(decision.explore, decision) is not decision:
            learner.forget(decision)
    exact = len(found) == np.count_nonzero(law) and decision.propensity is not None
    gone = next(arm for arm in places if arm in found)
    learner.retire_arms([gone])
    learner.add_arms([gone])  # a new arm with the same name
    saved, before, mean = learner.to_json(), learner.estimates(), np.zeros(len(places))
    for arm, decision in found.items():
        once = Learner.from_json(saved)
        once.observe(decision.id, loss=_loss(places.index(arm), case.arms))
        case.expect(once.round == learner.round + 1, "feedback of an arm that is gone does not count")
        _check_learner(case._replace(arms=len(places)), once, "after an arm was retired")
        mean += law[places.index(arm)] * (once.estimates() - before)
    if not exact or not case.weighs() or isinstance(case.policy, Forgetting):
        return
    losses = np.array([_loss(place, case.arms) for place in range(len(places))])
    losses = np.append(np.delete(losses, places.index(gone)), law @ losses)
    added = f"losses of {losses.tolist()} add {mean.tolist()} on average"
    message = f"{added} where an arm is retired meanwhile"
    case.expect(np.allclose(mean, losses, rtol=1e-7, atol=1e-9), message)


def _loss(place: int, arms: int) -> float:
    return 0.2 + 0.8 * place / arms


def _check_learner(case: Case, learner: Learner, when: str) -> None:
    """Check both laws and draws from them."""
    names = set(learner.arms)
    for _ in range(HISTORY):
        decision = learner.decide()
        message = f"{when} it gave {decision.exploit!r} and {decision.explore!r} of the arms {learner.arms}"
        case.expect({decision.exploit, decision.explore} <= names, message)
        learner.forget(decision)
    case.check_law(learner.exploitation_probabilities(), "exploitation_law")
    case.check_law(learner.exploration_probabilities(), "exploration_law")
