"""The paper's experiments and ours, each with specification, claims and pictures."""

from typing import NamedTuple


class Entry(NamedTuple):
    """An experiment in the list of all."""

    where: str  # its class, in the file that has it
    title: str
    origin: str  # the section of the paper, or "ours"
    about: str  # one line for the documentation
    in_quick: bool = True  # whether `reproduce --quick` runs it


# Every experiment by its name, in the order in which all are run. `decoupled reproduce`, its help and the page
# "Reproducing the paper" follow. The help reads this list, so no experiment is imported here.
# fmt: off
EXPERIMENTS = {
    "adversarial": Entry("published.Adversarial", "Adversarial regime", "section 4.2, Figure 2",
        "alternating losses, K = 8, gap 0.125"),
    "stochastic-easy": Entry("published.StochasticEasy", "Stochastic regime, easy", "section 4.3, Figure 4",
        "fixed mean rewards, five arms; the second best is 0.05 behind"),
    "stochastic-hard": Entry("published.StochasticHard", "Stochastic regime, hard", "section 4.3, Figure 5",
        "fixed mean rewards, five arms; the second best is 0.002 behind"),
    "grid": Entry("published.SixteenInstances", "Sixteen instances", "appendix E.2, Figure 6",
        "K in {4, 16, 32, 64}, gap in {0.03125, 0.0625, 0.125, 0.25}"),
    "runtime": Entry("times.Runtime", "Time per round", "section 4.2, Figure 3",
        "time per round for K = 2, 6, ..., 254, compiled and as a textbook NumPy step"),
    "conic": Entry("times.Conic", "A general conic solver", "appendix E.2, Figure 7",
        "Tsallis-INF solved by SCS against FTPL; needs the `conic` extra"),
    "movielens": Entry("movielens.Movies", "MovieLens", "appendix E.3, Figure 8",
        "32 to 256 movies as arms"),
    "tuned": Entry("tuned.TunedPolicies", "Every policy tuned", "ours",
        "regret by c, and the paper's figures with every policy at its best c"),
    "baseline": Entry("published.Baseline", "The simplest method", "ours",
        "follow the leader beside the paper's policies, also against adversaries that watch"),
    "horizon": Entry("growth.Horizon", "Long runs and many arms", "ours, after the theorems",
        "up to a million rounds, growing K, and the bounds"),
    "systems": Entry("systems.Systems", "Every system that the paper names", "ours, after sections 1 and 2",
        "every system that the paper names, side by side", in_quick=False),
    "less-regret": Entry("recommended.LessRegret", "Less regret: the ladder", "ours, [beyond the paper](beyond.md)",
        "`Ladder()` against the paper's three policies, centred FTPL and follow the leader, 3,000 runs", in_quick=False),
    "watched": Entry("growth.AdaptiveAdversaries", "Adaptive adversaries, up to a million rounds", "ours",
        "adaptive adversaries, by K and by T up to a million rounds", in_quick=False),
    "held-out": Entry("held_out.HeldOut", "Instances drawn at random", "ours, [beyond the paper](beyond-appendix.md#how-the-values-were-chosen)",
        "96 instances drawn after every value was fixed: `Ladder()` and eight others, as ratios to the paper's", in_quick=False),
    "noisy-movies": Entry("movielens.NoisyMovies", "Movies with noise, and in random order", "ours, after appendix E.3",
        "32 to 256 movies as arms, with Bernoulli noise on the ratings, and with users in random order", in_quick=False),
    "rungs": Entry("ladder.Rungs", "Which rungs the ladder uses", "ours, [how it works](beyond.md#how-it-works)",
        "the weights of the ladder's rungs by round, on alternating losses and against a punishing adversary", in_quick=False),
    "late-bloomer": Entry("ladder.LateBloomer", "An arm that becomes good late", "ours, [how it works](beyond-appendix.md#the-ladder-in-detail)",
        "three arms without noise, of which one is bad for long and then the best", in_quick=False),
    "drift": Entry("drift.Drift", "Worlds that change", "ours, [beyond the paper](beyond.md)",
        "the best arm changes: in turn, by random walks, or once and late; `Ladder()` with and without its memory", in_quick=False),
    "late": Entry("late.Late", "Late feedback", "ours, [theorems](ladder.md)",
        "alternating losses with feedback that is late or lost, a square wave made for delay, and the bounds", in_quick=False),
    "looks": Entry("late.Looks", "A share of the decisions explores", "ours, [theorem H](ladder-proof.md#theorem-h-a-coin-decides-who-is-looked-at)",
        "the paper's instances with all looks down to one in a hundred, by a coin, beside what is proved and what is possible", in_quick=False),
    "sticky": Entry("sticky.Sticky", "Switches of a key", "ours, [sticky serving](sticky.md)",
        "a key that comes in every round, with its own draws and with fresh ones: regret, and how often it is moved", in_quick=False),
    "judges": Entry("judges.Judges", "Judges that err", "ours, [labels](theory.md)",
        "four judges, of which two favour the worse arm: regret by their word alone, with labels and with true losses only, and verdicts", in_quick=False),
    "many-arms": Entry("many_arms.ManyArms", "A million arms", "ours",
        "all 1,682 films as arms, a generated catalogue of a million items, and the time of a round by K", in_quick=False),
}
# fmt: on
# Names for several at once. Of what is not in the quick version, one experiment is about the systems that the paper names.
GROUPS = {
    "beyond": tuple(
        name for name, each in EXPERIMENTS.items() if not each.in_quick and name != "systems"
    )
}
