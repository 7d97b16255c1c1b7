"""`check`, `inspect` and `inspect_round`: both sides of every inequality, along a trajectory or in one state."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Ints, number_in, share_of, whole_number
from decoupled.environments import Environment
from decoupled.errors import ParameterError
from decoupled.policies import FTPL, Ladder

from .bounds.gates import HALF, Gate
from .centred_round import CentredRound
from .inequality import Tally
from .ladder_path import run_ladder
from .lemmas import all_sides, in_order, ladder_path, ladder_round, one_round, path, switches
from .moment import Moment
from .probabilities import checked_estimates
from .report import Report
from .trajectory import run


def check(
    environment: Environment,
    policy: FTPL | Ladder | None = None,
    horizon: int = 1_000,
    *,
    rounds: int = 40,
    seed: int = 0,
    zeta: float = 0.1,
    whole_path: bool = True,
) -> Report:
    """Run FTPL or a ladder and evaluate both sides of every inequality that the proofs use.

    The lemmas about one round are evaluated in `rounds` rounds, spaced evenly in the logarithm of time, at a
    loss of 1, which is the hardest case. The decomposition of the regret and the unbiasedness of the estimates
    are evaluated over the whole trajectory. Probabilities are exact, so every violation is real.

    For a `Ladder` these are the lemmas of theorem T2, with the losses that were drawn for all arms, and what the theorem
    assumes of the policy: that its own compiled code explores, centres and slows down as the proof says.

    Args:
        environment: where losses come from; arm i* is the best fixed arm by mean loss.
        policy: the FTPL policy to run, with any alpha above 1, or a ladder; `FTPL()` if None.
        horizon: how many rounds to play.
        rounds: in how many of them to evaluate the lemmas.
        seed: an integer; the same seed gives the same report.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        whole_path: whether to evaluate the inequalities about the whole trajectory too, which takes every round.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> rivals = dc.environments.Bernoulli([0.5, 0.45])
    >>> report = lab.theory.check(rivals, dc.FTPL(), horizon=100, seed=0)
    >>> [line.inequality.name for line in report.surprises]
    []
    >>> report["on D_t with <=: w_best >= 1 / (2 e)"].violations > 0  # the event needs a strict inequality
    True
    >>> lab.theory.check(rivals, dc.Ladder(), horizon=100, seed=0).surprises
    []
    """
    policy = FTPL() if policy is None else policy
    if not isinstance(policy, Ladder) and (not isinstance(policy, FTPL) or not policy.published):
        rule = "must be the paper's FTPL policy, with importance weighting and one rate, or a Ladder"
        remedy = "the proofs are about these policies; for example dc.FTPL()"
        raise ParameterError.of("policy", policy, rule, remedy)
    number_in("zeta", zeta, 0.0, 1.0, "the paper has 0.1")
    horizon = whole_number("horizon", horizon, 1, "the default is 1000")
    count = whole_number("rounds", rounds, 1, "the default is 40")
    seed = whole_number("seed", seed, 0, "the default is 0")
    chosen = np.unique(np.geomspace(1.0, horizon, count).round().astype(np.int64))
    if isinstance(policy, Ladder):
        return _check_ladder(environment, policy, horizon, chosen, seed, whole_path)
    trajectory = run(policy, environment, horizon, seed)
    tally = Tally()
    for round_ in chosen:
        moment = trajectory.moment(int(round_), zeta)
        tally.add(all_sides(moment), moment)
    if whole_path:
        for round_, sides in path.whole(trajectory, zeta):
            tally.add([sides], trajectory.moment(round_, zeta))
    return Report(in_order(tally))


def _check_ladder(
    environment: Environment, policy: Ladder, horizon: int, chosen: Ints, seed: int, whole_path: bool
) -> Report:
    """The lemmas of theorem T2 in some rounds after the first, and those about the whole path."""
    played, tally = run_ladder(policy, environment, horizon, seed), Tally()
    for place in chosen - 1:
        at = played.rounds[place]
        tally.add(ladder_round.sides(at), at.moment)
    for round_, sides in ladder_path.whole(played) if whole_path else ():
        tally.add([sides], played.rounds[round_ - 2].moment)
    return Report(in_order(tally))


def inspect(
    estimates: ArrayLike, eta: float, alpha: float = 3.0, best: int = 0, zeta: float = 0.1
) -> Report:
    """Evaluate both sides of every inequality about one state, in a state of your choice.

    Args:
        estimates: the summed loss estimates of two or more arms.
        eta: the learning rate.
        alpha: the shape of the perturbations.
        best: the arm that the proofs call i*.
        zeta: where lemma D.1 splits its cases.

    >>> from decoupled_lab import theory
    >>> line = theory.inspect([50.0, 0.0], eta=1.0)["on D_t with <=: w_best >= 1 / (2 e)"]
    >>> line.violations, f"{line.witness.right:.1g}"
    (1, '7e-06')
    """
    moment = _moment(estimates, eta, alpha, best, zeta)
    tally = Tally()
    tally.add(all_sides(moment), moment)
    return Report(in_order(tally))


def inspect_round(
    estimates: ArrayLike,
    eta: float,
    losses: ArrayLike,
    *,
    eps: float | None = None,
    mean: float = 0.5,
    gate: Gate = HALF,
    rungs: Sequence[float] = (),
    alpha: float = 3.0,
    best: int = 0,
    zeta: float = 0.1,
) -> Report:
    """Evaluate both sides of the lemmas about one round of the centred estimator, in a round of your choice.

    These are L5, the last part of L6, S2 of sticky serving (up to 16 arms) and, for rungs, the steps of theorem E. The
    expectation over the explored arm is exact. The time grows with the square of the number of arms.

    Args:
        estimates: the summed loss estimates of two or more arms.
        eta: the exploitation rate, of the first rung if there are several.
        losses: the losses of all arms in this round, in [0, 1].
        eps: the exploration rate, at most eta; eta if None.
        mean: the baseline B, in [0, 1].
        gate: the gate that limits the baselines.
        rungs: exploitation rates of a ladder, at least eta; none by default.
        alpha: the shape of the perturbations.
        best: the arm that the proofs call i*.
        zeta: where theorem C calls a round late.

    >>> from decoupled_lab import theory
    >>> report = theory.inspect_round([0.0, 4.0, 9.0], eta=0.5, losses=[1.0, 0.0, 1.0], rungs=[0.5, 8.0])
    >>> report.surprises
    []
    >>> round(report["stability of a centred round <= jumps + drift"].ratio, 2)
    0.07
    """
    moment = _moment(estimates, eta, alpha, best, zeta)
    level = share_of("mean", mean, "losses are in [0, 1]")
    listed = np.atleast_1d(np.asarray(losses, object))
    given = np.array([share_of("losses", loss, "losses are in [0, 1]") for loss in listed])
    if len(given) != moment.arms:
        rule = f"must be {moment.arms} losses, one per arm"
        raise ParameterError.of("losses", losses, rule, "give the losses of all arms")
    slow = moment.eta if eps is None else number_in("eps", eps, 0.0, remedy="leave it out for eta")
    if slow > moment.eta:
        raise ParameterError.of("eps", eps, f"must be at most eta = {moment.eta:g}", "leave it out for eta")
    rates = [number_in("rungs", rate, 0.0, remedy="give rates of at least eta") for rate in rungs]
    if rates and min(rates) < moment.eta:
        rule = f"must be at least eta = {moment.eta:g}"
        raise ParameterError.of("rungs", rungs, rule, "eta is the rate of the first rung")
    played = CentredRound(moment, slow, level, given, gate, rates)
    tally = Tally()
    tally.add((*one_round.sides(played), *switches.round_sides(played)), moment)
    return Report(in_order(tally))


def _moment(estimates: ArrayLike, eta: float, alpha: float, best: int, zeta: float) -> Moment:
    values, rate, shape = checked_estimates(estimates, eta, alpha)
    if len(values) < 2:
        raise ParameterError.of("estimates", estimates, "must have two arms or more", "add an arm")
    arm = whole_number("best", best, 0, f"arms are 0 to {len(values) - 1}")
    if arm >= len(values):
        raise ParameterError.of("best", best, "is not an arm", f"arms are 0 to {len(values) - 1}")
    return Moment(values, rate, shape, arm, number_in("zeta", zeta, 0.0, 1.0, "the paper has 0.1"))
