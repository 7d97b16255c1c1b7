"""`check_policy`, and its checks: of every step, its laws, `init`, the engine and long runs; then
of saving, unbiased estimates, and arms that change.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.extras import needed_for
from ..base.validation import whole_number
from ..decision import Arm, Decision
from ..environments import LossTable
from ..errors import ParameterError
from ..kernels.feedback_delay import Direct
from ..kernels.random.sampling import KINDS
from ..kernels.random.stream import new_stream, uniform
from ..kernels.rounds import Run, Table
from ..kernels.state import ROUND, State
from ..kernels.worlds import TableWorld
from ..learner.learner import Learner
from ..policies import Forgetting, Policy
from ..simulation.cpu import loop_for, run_block, run_streams
from .case import HISTORY, PolicyUnderTest, arm_place
from .parts import DrawnRound, check_interpreted, check_parts, checked_draw

with needed_for("check_policy"):
    from scipy.stats import chisquare

MOST_IN_PYTHON = 10_000  # rounds of the endurance check, which would take a minute
FALSE_ALARM = 1e-6  # the chance that a chi-square test rejects a sound policy, over random seeds


def check_defined(case: PolicyUnderTest) -> None:
    """Check the parts of a policy, and its functions as plain Python.

    >>> import decoupled as dc
    >>> check_defined(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    check_parts(case.policy)
    check_interpreted(case.policy, case.losses(5 * HISTORY), case.seed)


def check_sound(case: PolicyUnderTest) -> None:
    """Check every step from outside, because compiled code checks nothing.

    >>> import decoupled as dc
    >>> check_sound(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    policy = case.policy
    losses = case.losses(5 * HISTORY)
    entries = case.call("params_type", policy.entries)
    values = np.array(policy.params(), np.float64)
    state = policy.layout.new_state(case.arms)
    stream = new_stream(np.random.SeedSequence(case.seed))
    case.call("init", entries.init, values, *state)
    for t in range(len(losses)):
        case.check_finite(state, f"after {t} observations")
        if t % HISTORY in (0, 1, HISTORY // 2):  # some laws are slow to compute
            case.check_laws(state)
        content = _content_of(policy, state)
        drawn = case.call("decide", entries.decide, values, *state, stream)
        draw = checked_draw(policy, drawn, case.arms)
        problem = "decide changed the state"
        rule = "it may change the stream and what `baselines` keep, and update is there to learn"
        case.expect(_content_of(policy, state) == content, f"{problem}; {rule}")
        _check_draw(case, state, draw)
        loss = losses[t, draw.explore]
        case.call("update", entries.update, values, *state, draw.explore, draw.weight, loss)
        has_round = isinstance(policy, Forgetting) or state.scalars[ROUND] == t + 2
        problem = "update changed the round, which the package keeps"
        case.expect(has_round, f"{problem}; leave state.scalars[ROUND] as it is")
    case.check_finite(state, f"after {len(losses)} observations")
    case.check_laws(state)
    case.check_estimates(state)


def _check_draw(case: PolicyUnderTest, state: State, draw: DrawnRound) -> None:
    """Check that a decision agrees with the laws and with its own weight."""
    exploit, explore, weight, propensity = draw
    if case.policy.coupled:
        problem = f"it is coupled, but decide gave two arms, {exploit} and {explore}"
        case.expect(exploit == explore, f"{problem}; give one arm twice")
    problem = f"decide gave the weight {weight}"
    remedy = "it must be finite and above 0, such as 1 / propensity"
    case.expect(0.0 < weight < np.inf, f"{problem}; {remedy}")
    if math.isnan(propensity):
        return
    chance = case.law(state, "exploration_law")[explore]
    problem = f"decide gave arm {explore} the propensity {propensity}, and exploration_law {chance}"
    remedy = "they must agree, or the propensity be NaN"
    case.expect(abs(propensity - chance) <= 1e-9 * chance, f"{problem}; {remedy}")
    problem = f"decide gave the weight {weight} with the propensity {propensity}"
    is_inverse = abs(weight * propensity - 1.0) <= 1e-9
    message = f"{problem}; weight is 1 / propensity"
    case.expect(not case.has_weighted_sums() or is_inverse, message)


def _content_of(policy: Policy, state: State) -> tuple[bytes, ...]:
    """A state without the count of events, and what a decision notes for its own update."""
    copy = State(state.scalars.copy(), state.floats.copy(), state.ints.copy())
    noted = () if policy.baselines is None else policy.baselines.kept
    for name in ("events", *noted):
        policy.layout.row(copy, name)[...] = 0
    return tuple(array.tobytes() for array in copy)


def check_laws(case: PolicyUnderTest) -> None:
    """Compare draws with the laws, before the first observation and after some.

    >>> import decoupled as dc
    >>> check_laws(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    for rounds in (0, HISTORY):
        fresh = case.policy.start(case.arms, case.seed, max_pending=case.draws)
        learner = case.learner(rounds) if rounds else fresh
        decisions = learner.decide(count=case.draws)
        exploit = learner.exploitation_probabilities()
        explore = learner.exploration_probabilities()
        for name, law in (("exploit", exploit), ("explore", explore)):
            drawn = [arm_place(getattr(decision, name)) for decision in decisions]
            counts = np.bincount(drawn, minlength=case.arms)
            problem = f"in {case.draws} draws it would {name} {counts.tolist()} times"
            expected = (case.draws * law).round(1).tolist()
            is_likely = _chi_square_p(counts, law) > FALSE_ALARM
            case.expect(is_likely, f"{problem}, by its law {expected}")


def _chi_square_p(counts: Any, law: Floats) -> float:
    """Pearson's test, with rare arms counted together; drawing an arm of chance 0 fails."""
    if counts[law == 0.0].any():
        return 0.0
    is_rare = counts.sum() * law < 10.0
    expected = counts.sum() * np.append(law[~is_rare], law[is_rare].sum())
    observed = np.append(counts[~is_rare], counts[is_rare].sum())
    # Still few: a Poisson variable of this mean exceeds 40 less than once in a million.
    if expected[-1] < 10.0:
        if observed[-1] > 40:
            return 0.0
        expected = expected[:-1]
        observed = observed[:-1]
    if len(expected) < 2:
        return 1.0
    # Laws sum to 1 up to rounding, and SciPy wants equal sums.
    expected *= observed.sum() / expected.sum()
    return float(chisquare(observed, expected).pvalue)


def check_init(case: PolicyUnderTest) -> None:
    """Check that a state rebuilt from the learned rows continues like the original.

    >>> import decoupled as dc
    >>> check_init(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    policy = case.policy
    entries = policy.entries()
    values = np.array(policy.params(), np.float64)
    state = policy.layout.new_state(case.arms)
    losses = case.losses(3 * HISTORY)
    stream = new_stream(np.random.SeedSequence(case.seed))
    entries.init(values, *state)
    for t in range(len(losses)):
        if t % HISTORY == HISTORY // 2:
            rebuilt = policy.layout.restrict(state, np.arange(case.arms))
            entries.init(values, *rebuilt)
            _compare(case, state, rebuilt)
            twice = State(rebuilt.scalars.copy(), rebuilt.floats.copy(), rebuilt.ints.copy())
            entries.init(values, *twice)  # as happens if some arms were unavailable
            _compare(case, rebuilt, twice)
            state = twice
        _, explore, weight, _ = entries.decide(values, *state, stream)
        entries.update(values, *state, explore, weight, losses[t, explore])


def _compare(case: PolicyUnderTest, state: State, rebuilt: State) -> None:
    """Check that two states have the same laws and decide alike."""
    policy = case.policy
    layout = policy.layout
    laws = (policy.exploitation_law, policy.exploration_law)
    is_same = all(law(state).tolist() == law(rebuilt).tolist() for law in laws)
    stream = new_stream(np.random.SeedSequence(case.seed + 1))
    same_stream = new_stream(np.random.SeedSequence(case.seed + 1))
    entries = policy.entries()
    values = np.array(policy.params(), np.float64)
    for _ in range(HISTORY):
        drawn = np.array(entries.decide(values, *state, stream))
        drawn_again = entries.decide(values, *rebuilt, same_stream)
        is_same = is_same and np.array_equal(drawn, drawn_again, equal_nan=True)
    differing = [
        name
        for name in (*layout.scalars, *layout.floats, *layout.ints)
        if layout.row(state, name).tolist() != layout.row(rebuilt, name).tolist()
    ]
    learned = ", ".join(layout.learned)
    problem = f"init does not derive from {learned} all that decisions need"
    case.expect(is_same, f"{problem}; look at {', '.join(differing)}")


def check_parity(case: PolicyUnderTest) -> None:
    """Check that engine and learner play the same arms.

    No two arms cost the same, so the regret shows the plays.

    >>> import decoupled as dc
    >>> check_parity(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    if case.policy.interpreted:  # only a learner can run it
        return
    horizon = 5 * HISTORY
    rows = np.random.default_rng(case.seed).random((7, case.arms))
    world = LossTable(rows, np.arange(horizon) % 7, noise="bernoulli")
    engine = run_block(case.policy, world, horizon, np.arange(1, horizon + 1), case.seed, range(1))
    learner = case.policy.start(case.arms, np.random.SeedSequence(case.seed, spawn_key=(0, 1)))
    noise, _ = run_streams(case.seed, 0)
    best = rows[np.arange(horizon) % 7].sum(axis=0).argmin()
    regret = 0.0
    for t in range(horizon):
        decision = learner.decide()
        means = rows[t % 7]
        learner.observe(decision, loss=float(uniform(noise) <= means[arm_place(decision.explore)]))
        regret += means[arm_place(decision.exploit)] - means[best]
        message = f"the engine and the learner part in round {t + 1}"
        case.expect(abs(engine.regret[0, t] - regret) < 1e-9, message)


def check_endurance(case: PolicyUnderTest) -> None:
    """Run many rounds in which no arm loses, all lose, or all but one lose.

    >>> import decoupled as dc
    >>> check_endurance(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    if case.policy.interpreted:
        return
    loop = loop_for(case.policy)
    arms = case.arms
    rounds = case.rounds
    if case.policy.in_python:
        rounds = min(rounds, MOST_IN_PYTHON)
    for losses in (np.zeros(arms), np.ones(arms), 1.0 - np.eye(arms)[arms // 2]):
        state = case.policy.layout.new_state(arms)
        noise, draws = run_streams(case.seed, 0)
        table = Table(losses.reshape(1, arms), np.zeros(rounds, np.int64), KINDS.index("none"))
        loop(
            Run(
                params=case.policy.params(),
                state=state,
                draws=draws,
                world=TableWorld(table, best=0, noise=noise, scratch=np.zeros(2, np.uint64)),
                feedback=Direct(),
                horizon=rounds,
                checkpoints=np.array([rounds]),
                regret=np.zeros(1),
                plays=np.zeros((2, arms), np.int64),
            )
        )
        case.check_finite(state, f"after {rounds} rounds of the losses {losses.tolist()}")
        case.check_laws(state)


def check_saving(case: PolicyUnderTest) -> None:
    """Save and load a learner, and continue both with late feedback.

    >>> import decoupled as dc
    >>> check_saving(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    learner = case.learner(HISTORY)
    waiting = learner.decide(count=5)
    loaded = Learner.from_json(learner.to_json())
    case.expect(loaded.policy == case.policy, f"loaded from JSON it is {loaded.policy!r}")
    for losses in case.losses(HISTORY):
        decision = learner.decide()
        other = loaded.decide()
        problem = f"saved and loaded it decides {other}, and without that {decision}"
        case.expect(decision == other, problem)
        late = waiting.pop() if waiting else decision
        loss = float(losses[arm_place(late.explore)])
        learner.observe(late.id, loss=loss)
        loaded.observe(late.id, loss=loss)
    case.expect(loaded.to_json() == learner.to_json(), "saved and loaded, it learns something else")


def check_unbiased(case: PolicyUnderTest) -> None:
    """Check what an observation adds to the estimates, in the mean over the explored arm.

    >>> import decoupled as dc
    >>> check_unbiased(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    is_forgetting = isinstance(case.policy, Forgetting)  # a discounted sum is not unbiased
    learner = case.learner(HISTORY // 4)
    law = learner.exploration_probabilities()
    if not case.has_weighted_sums() or is_forgetting or learner.decide().propensity is None:
        return
    losses = np.linspace(0.2, 1.0, case.arms)
    decision_of: dict[int, Decision] = {}
    for _ in range(10):
        for decision in learner.decide(count=case.draws // 10):
            decision_of[arm_place(decision.explore)] = decision
    for decision in learner.pending:  # one per arm is enough, and quick to save and load
        if decision_of.get(arm_place(decision.explore)) is not decision:
            learner.forget(decision)
    saved = learner.to_json()
    estimates = learner.estimates()
    mean = np.zeros(case.arms)
    for arm, decision in decision_of.items():
        observer = Learner.from_json(saved)
        observer.observe(decision.id, loss=float(losses[arm]))
        mean += law[arm] * (observer.estimates() - estimates)
    arms = sorted(decision_of)
    added = f"losses of {losses[arms].tolist()} add {mean[arms].tolist()}"
    is_unbiased = np.allclose(mean[arms], losses[arms], rtol=1e-7, atol=1e-9)
    case.expect(is_unbiased, f"{added} to the estimates on average")


def check_newcomers(case: PolicyUnderTest) -> None:
    """Add two arms that lose twice as much as the others, which all lose alike.

    >>> import decoupled as dc
    >>> check_newcomers(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    if isinstance(case.policy, Forgetting):
        return  # it may have forgotten half of it: check its policy instead
    learner = case.policy.start(case.arms, case.seed)
    newcomers = ["new", "newer"]
    learner.replay([(arm, 1.0 / case.arms, 0.5) for arm in learner.arms] * 40)
    learner.add_arms(newcomers)
    larger = case._replace(arms=len(learner.arms))
    _check_learner(larger, learner, "after arms came")
    chance = 1.0 / larger.arms
    learner.replay([(arm, chance, 1.0 if arm in newcomers else 0.5) for arm in learner.arms] * 20)
    law = learner.exploitation_probabilities()
    problem = (
        "arms lost 1/2 each time, two that came late lost 1, "
        f"and the law is {law.round(3).tolist()}, they last"
    )
    is_fair = (law[-2:] <= law[:-2].max()).all()
    case.expect(is_fair, f"{problem}; say in `init_new_arms` what a newcomer has learned")


def check_retired(case: PolicyUnderTest) -> None:
    """Check the mean as in `check_unbiased` if an arm is retired and another added meanwhile.

    >>> import decoupled as dc
    >>> check_retired(PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0))
    """
    learner = case.learner(HISTORY // 4)
    learner.add_arms(["spare"])
    arms = list(learner.arms)
    law = learner.exploration_probabilities()
    decision_of: dict[Arm, Decision] = {}
    for _ in range(10_000):
        decision = learner.decide()
        if decision_of.setdefault(decision.explore, decision) is not decision:
            learner.forget(decision)
    is_exact = len(decision_of) == np.count_nonzero(law) and decision.propensity is not None
    retired = next(arm for arm in arms if arm in decision_of)
    learner.retire_arms([retired])
    learner.add_arms([retired])  # a new arm with the same name
    saved = learner.to_json()
    estimates = learner.estimates()
    mean = np.zeros(len(arms))
    for arm, decision in decision_of.items():
        observer = Learner.from_json(saved)
        observer.observe(decision.id, loss=_loss(arms.index(arm), case.arms))
        is_counted = observer.round == learner.round + 1
        case.expect(is_counted, "feedback of an arm that is gone does not count")
        _check_learner(case._replace(arms=len(arms)), observer, "after an arm was retired")
        mean += law[arms.index(arm)] * (observer.estimates() - estimates)
    if not is_exact or not case.has_weighted_sums() or isinstance(case.policy, Forgetting):
        return
    losses = np.array([_loss(place, case.arms) for place in range(len(arms))])
    losses = np.append(np.delete(losses, arms.index(retired)), law @ losses)
    added = f"losses of {losses.tolist()} add {mean.tolist()} on average"
    is_unbiased = np.allclose(mean, losses, rtol=1e-7, atol=1e-9)
    case.expect(is_unbiased, f"{added} where an arm is retired meanwhile")


def _loss(place: int, arms: int) -> float:
    """Another loss for each arm."""
    return 0.2 + 0.8 * (place / arms)  # at most 1: 0.8 * 3 / 3 is more than 0.8


def _check_learner(case: PolicyUnderTest, learner: Learner, when: str) -> None:
    """Check both laws and draws from them."""
    names = set(learner.arms)
    for _ in range(HISTORY):
        decision = learner.decide()
        pair = f"{decision.exploit!r} and {decision.explore!r}"
        problem = f"{when} it gave {pair} of the arms {learner.arms}"
        case.expect({decision.exploit, decision.explore} <= names, problem)
        learner.forget(decision)
    case.check_law(learner.exploitation_probabilities(), "exploitation_law")
    case.check_law(learner.exploration_probabilities(), "exploration_law")


CHECKS: tuple[Callable[[PolicyUnderTest], None], ...] = (
    check_defined,
    check_sound,
    check_laws,
    check_init,
    check_saving,
    check_unbiased,
    check_newcomers,
    check_retired,
    check_parity,
    check_endurance,
)


def check_policy(policy: Policy, *, arms: int = 5, rounds: int = 100_000, seed: int = 0) -> None:
    """Check that a policy keeps the contract in `decoupled.testing`.

    Raise `ContractError`, an AssertionError, if it does not.

    All draws are seeded, so the result is always the same. It takes a few seconds, most of them to
    compile. Passing is no proof: also compare your policy with a slow, simple version of it.

    Args:
        policy: the policy with its parameters.
        arms: the number of arms, at least two.
        rounds: the number of rounds with extreme losses; at most 10,000 for a policy in plain
            Python.
        seed: the seed of all draws.

    >>> import decoupled as dc
    >>> dc.testing.check_policy(dc.FollowTheLeader(), rounds=1_000)
    """
    value: object = policy
    if isinstance(value, type) and issubclass(value, Policy):
        remedy = f"give a policy with its parameters: {value.__name__}(...)"
        raise ParameterError.of("policy", value, "is a class", remedy)
    if not isinstance(value, Policy):
        raise ParameterError.of("policy", value, "is not a policy", "for example dc.FTPL()")
    case = PolicyUnderTest(
        policy=policy,
        arms=whole_number("arms", arms, 2, "the default is 5"),
        rounds=whole_number("rounds", rounds, 1, "the default is 100,000"),
        seed=whole_number("seed", seed, 0, "the default is 0"),
    )
    for check in CHECKS:
        case.call(f"the check of {check.__name__.removeprefix('check_')}", check, case)
