"""`check_policy`: the checks that every policy must pass, for one of your own.

The contract, in the order in which it is checked:

- **defined**: the class has all its parts, and its functions take what they are given and return what they
  should; they run as plain Python first, which sees names that are not defined and arrays that end;
- **sound**: arms are arms, weights and propensities are what they say, both laws are probabilities, and
  nothing in the state becomes NaN or infinite;
- **deciding**: `decide` changes the random stream and nothing else;
- **laws**: decisions have the laws that the policy states, by a chi-square test, and carry the propensity
  of their arm;
- **init**: it derives from the learned rows all that decisions depend on;
- **saving**: a learner that is saved and loaded goes on bit for bit;
- **unbiased**: where `cumulative` is "estimates", the mean of what a decision adds is the losses;
- **newcomers**: an arm that comes late and only loses is not the favourite; see `Policy.init_new_arms`;
- **retired**: feedback of an arm that is gone does to the others what it would have done;
- **parity**: the engine plays as the learner does;
- **endurance**: nothing breaks in many rounds of extreme losses.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy.stats import chi2

from ..base.arrays import Floats
from ..base.validation import whole_number
from ..decision import Arm, Decision
from ..environments import LossTable
from ..errors import ContractError, ParameterError, invalid_value, shown
from ..kernels.random.noise import KINDS
from ..kernels.random.stream import new_stream, uniform
from ..kernels.rounds import Table
from ..kernels.state import ROUND, State
from ..learner.learner import Learner
from ..policies import Forgetting, Policy
from ..simulation.cpu import run_block, run_streams, table_loop
from .definition import Drawn, check_interpreted, check_parts, checked_draw, fail, raised

FALSE_ALARM = (
    1e-6  # the chance that one chi-square test fails on a sound policy, were its seed drawn afresh
)
DRAWS = 50_000
HISTORY = 60


class Case(NamedTuple):
    """A policy under test."""

    policy: Policy
    arms: int
    rounds: int
    seed: int

    def expect(self, holds: object, message: str) -> None:
        """Say what is wrong unless `holds`."""
        if not holds:
            fail(self.policy, message)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call something of the policy's; an exception is its mistake."""
        try:
            return function(*arguments)
        except ContractError:
            raise
        except Exception as error:
            raised_from(self.policy, what, error)

    def losses(self, rounds: int) -> Floats:
        """Losses that differ between arms and rounds."""
        generator = np.random.default_rng(self.seed)
        return generator.random((rounds, self.arms)) * np.linspace(0.4, 1.0, self.arms)

    def learner(self, rounds: int) -> Learner:
        """A learner that saw every arm, and then so many rounds."""
        learner = self.policy.start(self.arms, self.seed, max_pending=10 * DRAWS)
        learner.replay([(arm, 1.0 / self.arms, arm / self.arms) for arm in range(self.arms)])
        for losses in self.losses(rounds):
            decision = learner.decide()
            learner.observe(decision, loss=float(losses[_place(decision.explore)]))
        return learner


def raised_from(policy: Policy, what: str, error: Exception) -> NoReturn:
    """Say that a part of a policy cannot be compiled, or raised an exception."""
    try:
        fail(policy, f"{what} {raised(error)}")
    except ContractError as told:
        raise told from error


def check_policy(policy: Policy, *, arms: int = 5, rounds: int = 100_000, seed: int = 0) -> None:
    """Raise `ContractError`, an AssertionError, where a policy breaks the contract; see `decoupled.testing`.

    What it draws is seeded, so it says the same each time. It takes a few seconds, most of them to compile.
    A check that passes is no proof: hold a policy against a slow twin of its own as well.

    Args:
        policy: the policy, with the parameters that are to be checked.
        arms: how many arms it is tried on, two at least.
        rounds: how many rounds of extreme losses it has to endure.
        seed: of everything that is drawn.

    >>> import decoupled as dc
    >>> dc.testing.check_policy(dc.FollowTheLeader(), rounds=1_000)
    """
    given: object = policy
    if isinstance(given, type) and issubclass(given, Policy):
        rule, remedy = "is a class", f"give a policy with its parameters: {given.__name__}(...)"
        raise ParameterError(invalid_value("policy", given, rule, remedy))
    if not isinstance(given, Policy):
        raise ParameterError(invalid_value("policy", given, "is no policy", "for example dc.FTPL()"))
    case = Case(
        policy,
        whole_number("arms", arms, 2, "the default is 5"),
        whole_number("rounds", rounds, 1, "the default is 100,000"),
        whole_number("seed", seed, 0, "the default is 0"),
    )
    for check in CHECKS:
        case.call(f"the check of {check.__name__.removeprefix('check_')}", check, case)


def check_defined(case: Case) -> None:
    """The parts of a policy, and its functions as plain Python."""
    check_parts(case.policy)
    check_interpreted(case.policy, case.losses(5 * HISTORY), case.seed)


def check_sound(case: Case) -> None:
    """Every step, looked at from outside compiled code, which would go on with whatever it is given."""
    policy, losses = case.policy, case.losses(5 * HISTORY)
    entries, values = case.call("params_type", policy.entries), np.array(policy.params(), np.float64)
    state, stream = policy.layout.new_state(case.arms), new_stream(np.random.SeedSequence(case.seed))
    case.call("init", entries.init, values, *state)
    for t in range(len(losses)):
        _check_finite(case, state, f"after {t} observations")
        if t % HISTORY in (0, 1, HISTORY // 2):  # some laws are slow to find
            _check_laws(case, state)
        before = _bytes(state)
        drawn = checked_draw(policy, case.call("decide", entries.decide, values, *state, stream), case.arms)
        case.expect(
            _bytes(state) == before,
            "decide changed the state; it may change the stream alone, and update is there to learn",
        )
        _check_drawn(case, state, drawn)
        given = (drawn.explore, drawn.weight, losses[t, drawn.explore])
        case.call("update", entries.update, values, *state, *given)
        told = "update changed the round, which the package keeps; leave state.scalars[ROUND] as it is"
        case.expect(state.scalars[ROUND] == t + 2, told)
    _check_finite(case, state, f"after {len(losses)} observations")
    _check_laws(case, state)
    _estimates(case, state)


def _check_drawn(case: Case, state: State, drawn: Drawn) -> None:
    exploit, explore, weight, propensity = drawn
    if case.policy.coupled:
        told = f"it is coupled, but decide gave two arms, {exploit} and {explore}; give one arm twice"
        case.expect(exploit == explore, told)
    told = f"decide gave the weight {weight}; it must be finite and above 0, such as 1 / propensity"
    case.expect(0.0 < weight < np.inf, told)
    if propensity == propensity:
        law = _law(case, state, "exploration_law")
        told = (
            f"decide gave arm {explore} the propensity {propensity}, and exploration_law {law[explore]}; "
            "they must agree, or the propensity be NaN"
        )
        case.expect(abs(propensity - law[explore]) <= 1e-9 * law[explore], told)
        told = f"decide gave the weight {weight} with the propensity {propensity}; weight is 1 / propensity"
        case.expect(not _weighs(case.policy) or abs(weight * propensity - 1.0) <= 1e-9, told)


def _check_finite(case: Case, state: State, when: str) -> None:
    layout = case.policy.layout
    for name in (*layout.scalars, *layout.floats):
        row = layout.row(state, name)
        told = f"{name!r} is {row.tolist()} {when}: not finite; look at what init and update write there"
        case.expect(np.isfinite(row).all(), told)


def _check_laws(case: Case, state: State) -> None:
    _law(case, state, "exploitation_law")
    _law(case, state, "exploration_law")


def _law(case: Case, state: State, name: str) -> Floats:
    return _checked_law(case, case.call(name, getattr(case.policy, name), state), name)


def _checked_law(case: Case, given: Any, name: str) -> Floats:
    law = _numbers(given)
    good = law.shape == (case.arms,) and (law >= 0.0).all() and abs(law.sum() - 1.0) < 1e-9
    told = f"{name} is {shown(_listed(given))}, which is no law on {case.arms} arms; "
    case.expect(good, told + f"give {case.arms} probabilities that sum to 1")
    return law


def _estimates(case: Case, state: State) -> None:
    given = case.call("estimates", case.policy.estimates, state)
    estimates = _numbers(given)
    told = f"estimates gave {shown(_listed(given))}; give a finite number for each of {case.arms} arms"
    case.expect(estimates.shape == (case.arms,) and np.isfinite(estimates).all(), told)


def _numbers(given: Any) -> Floats:
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _listed(given: Any) -> object:
    return given.tolist() if isinstance(given, np.ndarray) else given


def _weighs(policy: Policy) -> bool:
    """Whether what is learned adds up weighted losses: to a mean the weight does not matter."""
    return policy.cumulative == "estimates"


def check_laws(case: Case) -> None:
    """Draws against the laws, before the first observation and after some."""
    for rounds in (0, HISTORY):
        learner = case.policy.start(case.arms, case.seed, max_pending=DRAWS) if rounds == 0 else None
        learner = learner or case.learner(rounds)
        decisions = learner.decide(count=DRAWS)
        for name, law in (
            ("exploit", learner.exploitation_probabilities()),
            ("explore", learner.exploration_probabilities()),
        ):
            drawn = [_place(getattr(decision, name)) for decision in decisions]
            counts = np.bincount(drawn, minlength=case.arms)
            told = f"in {DRAWS} draws it would {name} {counts.tolist()} times, by its law {(DRAWS * law).round(1).tolist()}"
            case.expect(_chi_square_p(counts, law) > FALSE_ALARM, told)


def _chi_square_p(counts: Any, law: Floats) -> float:
    """Pearson's test; arms that expect few draws count together, and those of chance zero refuse any."""
    if counts[law == 0.0].any():
        return 0.0
    rare = counts.sum() * law < 10.0
    expected = counts.sum() * np.append(law[~rare], law[rare].sum())
    observed = np.append(counts[~rare], counts[rare].sum())
    if expected[-1] < 10.0:  # still few: whatever they are, a Poisson tail of one in a million is below 40
        if observed[-1] > 40:
            return 0.0
        expected, observed = expected[:-1], observed[:-1]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def check_init(case: Case) -> None:
    """A state made of the learned rows alone goes on as the one they were taken from."""
    policy = case.policy
    entries, values = policy.entries(), np.array(policy.params(), np.float64)
    state, losses = policy.layout.new_state(case.arms), case.losses(3 * HISTORY)
    stream = new_stream(np.random.SeedSequence(case.seed))
    entries.init(values, *state)
    for t in range(len(losses)):
        if t % HISTORY == HISTORY // 2:
            again = policy.layout.restrict(state, np.arange(case.arms))
            entries.init(values, *again)
            _compare(case, state, again)
            twice = State(again.scalars.copy(), again.floats.copy(), again.ints.copy())
            entries.init(values, *twice)  # as it is done where some arms were away
            _compare(case, again, twice)
            state = twice
        _, explore, weight, _ = entries.decide(values, *state, stream)
        entries.update(values, *state, explore, weight, losses[t, explore])


def _compare(case: Case, state: State, again: State) -> None:
    policy, layout = case.policy, case.policy.layout
    same = all(
        law(state).tolist() == law(again).tolist()
        for law in (policy.exploitation_law, policy.exploration_law)
    )
    one, two = (new_stream(np.random.SeedSequence(case.seed + 1)) for _ in range(2))
    entries, values = policy.entries(), np.array(policy.params(), np.float64)
    for _ in range(HISTORY):
        drawn = np.array(entries.decide(values, *state, one))
        same = same and np.array_equal(drawn, entries.decide(values, *again, two), equal_nan=True)
    names = [*layout.scalars, *layout.floats, *layout.ints]
    differ = [
        name for name in names if layout.row(state, name).tolist() != layout.row(again, name).tolist()
    ]
    told = f"init does not derive from {', '.join(layout.learned)} all that decisions need; look at {', '.join(differ)}"
    case.expect(same, told)


def check_saving(case: Case) -> None:
    """Saved, loaded, and continued with feedback that comes late."""
    learner = case.learner(HISTORY)
    waiting = learner.decide(count=5)
    again = Learner.from_json(learner.to_json())
    case.expect(again.policy == case.policy, f"loaded from JSON it is {again.policy!r}")
    for losses in case.losses(HISTORY):
        one, two = learner.decide(), again.decide()
        case.expect(one == two, f"saved and loaded it decides {two}, and without that {one}")
        late = waiting.pop() if waiting else one
        for each in (learner, again):
            each.observe(late.id, loss=float(losses[_place(late.explore)]))
    case.expect(again.to_json() == learner.to_json(), "saved and loaded, it learns something else")


def check_unbiased(case: Case) -> None:
    """The mean over the arms that could be explored of what observing adds to the estimates."""
    forgets = isinstance(case.policy, Forgetting)  # what it shrinks is no longer an unbiased sum
    learner = case.learner(HISTORY // 4)
    law = learner.exploration_probabilities()
    if not _weighs(case.policy) or forgets or learner.decide().propensity is None:
        return
    losses = np.linspace(0.2, 1.0, case.arms)
    mean = np.zeros(case.arms)
    found = {_place(each.explore): each for _ in range(10) for each in learner.decide(count=5_000)}
    for each in learner.pending:  # one of each arm is enough, and is soon saved and loaded
        if found.get(_place(each.explore)) is not each:
            learner.forget(each)
    saved, before = learner.to_json(), learner.estimates()
    for arm, decision in found.items():
        once = Learner.from_json(saved)
        once.observe(decision.id, loss=float(losses[arm]))
        mean += law[arm] * (once.estimates() - before)
    seen = sorted(found)
    told = f"losses of {losses[seen].tolist()} add {mean[seen].tolist()} to the estimates on average"
    case.expect(np.allclose(mean[seen], losses[seen], rtol=1e-7, atol=1e-9), told)


def check_newcomers(case: Case) -> None:
    """Arms that all lose alike, and later two more that lose twice as much."""
    if isinstance(case.policy, Forgetting):  # it may have forgotten the half of it: look at its policy
        return
    learner, newcomers = case.policy.start(case.arms, case.seed), ["new", "newer"]
    learner.replay([(arm, 1.0 / case.arms, 0.5) for arm in learner.arms] * 40)
    learner.add_arms(newcomers)
    larger = case._replace(arms=len(learner.arms))
    _check_learner(larger, learner, "after arms came")
    chance = 1.0 / larger.arms
    learner.replay([(arm, chance, 1.0 if arm in newcomers else 0.5) for arm in learner.arms] * 20)
    law = learner.exploitation_probabilities()
    told = (
        f"arms lost 1/2 each time, two that came late lost 1, and the law is {law.round(3).tolist()}, they last; "
        "say in `init_new_arms` what a newcomer has learned"
    )
    case.expect((law[-2:] <= law[:-2].max()).all(), told)


def check_retired(case: Case) -> None:
    """The mean, as in `check_unbiased`, while one of the arms goes before the feedback and another comes."""
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
    learner.add_arms([gone])  # the name, and no more than that
    saved, before, mean = learner.to_json(), learner.estimates(), np.zeros(len(places))
    for arm, decision in found.items():
        once = Learner.from_json(saved)
        once.observe(decision.id, loss=_loss(places.index(arm), case.arms))
        case.expect(once.round == learner.round + 1, "feedback of an arm that is gone does not count")
        _check_learner(case._replace(arms=len(places)), once, "after an arm was retired")
        mean += law[places.index(arm)] * (once.estimates() - before)
    if not exact or not _weighs(case.policy) or isinstance(case.policy, Forgetting):
        return
    losses = np.array([_loss(place, case.arms) for place in range(len(places))])
    losses = np.append(np.delete(losses, places.index(gone)), law @ losses)
    told = f"losses of {losses.tolist()} add {mean.tolist()} on average where an arm is retired meanwhile"
    case.expect(np.allclose(mean, losses, rtol=1e-7, atol=1e-9), told)


def _loss(place: int, arms: int) -> float:
    return 0.2 + 0.8 * place / arms


def _check_learner(case: Case, learner: Learner, when: str) -> None:
    """Both laws, and what is drawn from them."""
    names = set(learner.arms)
    for _ in range(HISTORY):
        decision = learner.decide()
        told = f"{when} it gave {decision.exploit!r} and {decision.explore!r} of the arms {learner.arms}"
        case.expect({decision.exploit, decision.explore} <= names, told)
        learner.forget(decision)
    _checked_law(case, learner.exploitation_probabilities(), "exploitation_law")
    _checked_law(case, learner.exploration_probabilities(), "exploration_law")


def check_parity(case: Case) -> None:
    """The same plays, round by round: no two arms cost the same, so the regret curve tells them."""
    if case.policy.interpreted:  # only a learner can run it
        return
    horizon = 5 * HISTORY
    rows = np.random.default_rng(case.seed).random((7, case.arms))
    world = LossTable(rows, np.arange(horizon) % 7, noise="bernoulli")
    engine = run_block(case.policy, world, horizon, np.arange(1, horizon + 1), case.seed, 0, 1)
    learner = case.policy.start(case.arms, np.random.SeedSequence(case.seed, spawn_key=(0, 1)))
    noise, _ = run_streams(case.seed, 0)
    best = rows[np.arange(horizon) % 7].sum(axis=0).argmin()
    regret = 0.0
    for t in range(horizon):
        decision = learner.decide()
        means = rows[t % 7]
        learner.observe(decision, loss=float(uniform(noise) <= means[_place(decision.explore)]))
        regret += means[_place(decision.exploit)] - means[best]
        told = f"the engine and the learner part in round {t + 1}"
        case.expect(abs(engine.regret[0, t] - regret) < 1e-9, told)


def check_endurance(case: Case) -> None:
    """Many rounds in which no arm loses, all do, or all but one."""
    if case.policy.interpreted:
        return
    loop, arms, rounds = table_loop(case.policy), case.arms, case.rounds
    for losses in (np.zeros(arms), np.ones(arms), 1.0 - np.eye(arms)[arms // 2]):
        state = case.policy.layout.new_state(arms)
        noise, draws = run_streams(case.seed, 0)
        table = Table(losses.reshape(1, arms), np.zeros(rounds, np.int64), KINDS.index("none"))
        regret, plays = np.zeros(1), np.zeros((2, arms), np.int64)
        ends = np.array([rounds])
        loop(
            case.policy.params(), state, draws, noise, np.zeros(2, np.uint64), table, 0, ends, regret, plays
        )
        _check_finite(case, state, f"after {rounds} rounds of the losses {losses.tolist()}")
        _check_laws(case, state)


def _bytes(state: State) -> tuple[bytes, ...]:
    return tuple(part.tobytes() for part in state)


def _place(arm: object) -> int:
    return int(arm)  # type: ignore[call-overload,no-any-return]


CHECKS: tuple[Callable[[Case], None], ...] = (
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
