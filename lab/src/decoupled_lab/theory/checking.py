"""`check`, `inspect` and `inspect_round`: both sides of every inequality, as a report."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Ints, check_number, whole_number
from decoupled.environments import Environment
from decoupled.errors import ParameterError, near_name
from decoupled.policies import FTPL, Ladder

from .bounds.constants import HALF, Gate
from .inequality import Line, Tally
from .lemmas import all_sides, centred, in_order, ladder, path, switches
from .moment import Moment
from .probabilities import checked_estimates
from .rounds import CentredRound
from .trajectory import run, run_ladder

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Report:
    """The result for every inequality of the proofs along a trajectory.

    A ratio is left side over right side: 1 is tight, and above 1 is a violation. `lines` follow the order of
    the argument, and each has the `witness` that shows its ratio. The status "as printed" marks a step that
    fails somewhere; its corrected form, with status "corrected", is next to it. The status "ours" marks a lemma of
    the ladder. The status "not claimed" means that the parameters are outside the theorem's range.

    Attributes:
        lines: one line for each inequality, in the order of the argument.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> report = lab.theory.check(dc.environments.Alternating(arms=4, gap=0.25), horizon=50, seed=1)
    >>> report.surprises
    []
    >>> report["w <= (1 + eta u)^-alpha"].violations
    0
    """

    lines: tuple[Line, ...]

    @property
    def violations(self) -> list[Line]:
        """Every line that failed somewhere, including the known slips."""
        return [line for line in self.lines if line.violations]

    @property
    def surprises(self) -> list[Line]:
        """The lines that should hold but failed."""
        return [line for line in self.violations if line.inequality.expected]

    def __getitem__(self, name: str) -> Line:
        for line in self.lines:
            if line.inequality.name == name:
                return line
        names = [line.inequality.name for line in self.lines]
        raise ParameterError.of(
            "name", name, "is not an inequality of this report", near_name(name, names)
        )

    def table(self) -> "pd.DataFrame":
        """One row per inequality: its source, status, number of evaluations, tightest ratio and violations."""
        import pandas as pd

        rows = [
            (*astuple(each.inequality), each.evaluated, each.ratio, each.violations)
            for each in self.lines
        ]
        columns = ["inequality", "source", "status", "evaluated", "ratio", "violations"]
        return pd.DataFrame(rows, columns=columns).set_index("inequality")


def combine(reports: Iterable[Report]) -> Report:
    """Merge several reports into one: counts add up, and each line keeps its tightest state.

    Args:
        reports: the reports, of any number of trajectories.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> world = dc.environments.Alternating(arms=4, gap=0.25)
    >>> reports = [lab.theory.check(world, horizon=20, seed=seed) for seed in range(2)]
    >>> combined = lab.theory.combine(reports)
    >>> every = [line for report in reports for line in report.lines]
    >>> sum(line.evaluated for line in combined.lines) == sum(line.evaluated for line in every)
    True
    """
    tally = Tally()
    for report in reports:
        tally.merge(report.lines)
    return Report(in_order(tally))


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

    For a `Ladder` these are the lemmas of theorem T2, with the losses that were drawn for all arms, and the theorem's
    assumptions about the policy: that its compiled code explores, centres and slows down as the proof says.

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
    given: object = policy
    if not isinstance(given, (FTPL, Ladder)):
        rule = "must be the paper's FTPL policy, or a Ladder"
        remedy = "the proofs are about these policies; for example dc.FTPL()"
        raise ParameterError.of("policy", policy, rule, remedy)
    check_number("zeta", zeta, "the paper has 0.1", above=0.0, below=1.0)
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
    environment: Environment,
    policy: Ladder,
    horizon: int,
    chosen: Ints,
    seed: int,
    whole_path: bool,
) -> Report:
    """The lemmas of theorem T2 in some rounds after the first, and those about the whole path."""
    played, tally = run_ladder(policy, environment, horizon, seed), Tally()
    for place in chosen - 1:
        at = played.rounds[place]
        tally.add(ladder.ladder_sides(at), at.moment)
    for round_, sides in ladder.whole_ladder(played) if whole_path else ():
        tally.add([sides], played.rounds[round_ - 2].moment)
    return Report(in_order(tally))


def inspect(
    estimates: ArrayLike, eta: float, alpha: float = 3.0, best: int = 0, zeta: float = 0.1
) -> Report:
    """Evaluate both sides of every inequality about one state, for a state that you choose.

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
    """Evaluate both sides of the lemmas about one round of the centred estimator, for a round that you choose.

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
    level = check_number("mean", mean, "losses are in [0, 1]", at_least=0.0, at_most=1.0)
    listed = np.atleast_1d(np.asarray(losses, object))
    given = np.array(
        [
            check_number("losses", loss, "losses are in [0, 1]", at_least=0.0, at_most=1.0)
            for loss in listed
        ]
    )
    if len(given) != moment.arms:
        rule = f"must be {moment.arms} losses, one per arm"
        raise ParameterError.of("losses", losses, rule, "give the losses of all arms")
    slow = (
        moment.eta if eps is None else check_number("eps", eps, "leave it out for eta", above=0.0)
    )
    if slow > moment.eta:
        raise ParameterError.of(
            "eps", eps, f"must be at most eta = {moment.eta:g}", "leave it out for eta"
        )
    rates = [check_number("rungs", rate, "give rates of at least eta", above=0.0) for rate in rungs]
    if rates and min(rates) < moment.eta:
        rule = f"must be at least eta = {moment.eta:g}"
        raise ParameterError.of("rungs", rungs, rule, "eta is the rate of the first rung")
    played = CentredRound(moment, slow, level, given, gate, rates)
    tally = Tally()
    tally.add((*centred.centred_sides(played), *switches.round_sides(played)), moment)
    return Report(in_order(tally))


def _moment(estimates: ArrayLike, eta: float, alpha: float, best: int, zeta: float) -> Moment:
    values, rate, shape = checked_estimates(estimates, eta, alpha)
    if len(values) < 2:
        raise ParameterError.of("estimates", estimates, "must have two arms or more", "add an arm")
    arm = whole_number("best", best, 0, f"arms are 0 to {len(values) - 1}")
    if arm >= len(values):
        raise ParameterError.of("best", best, "is not an arm", f"arms are 0 to {len(values) - 1}")
    return Moment(
        values,
        rate,
        shape,
        arm,
        check_number("zeta", zeta, "the paper has 0.1", above=0.0, below=1.0),
    )
