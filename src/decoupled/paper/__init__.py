"""The paper's experiments and ours: one file each, with specification, claims and pictures."""

# Every experiment, in the order in which all are run: its name, and its class in the file that has it.
# `decoupled reproduce`, its help and the page "Reproducing the paper" follow. The help reads this list, so
# nothing is imported here.
EXPERIMENTS = {
    "adversarial": "adversarial.Adversarial",
    "stochastic-easy": "stochastic.StochasticEasy",
    "stochastic-hard": "stochastic.StochasticHard",
    "grid": "grid.Grid",
    "runtime": "runtime.Runtime",
    "conic": "conic.Conic",
    "movielens": "movielens.Movies",
    "tuned": "tuned.Tuned",
    "baseline": "baseline.Baseline",
    "horizon": "horizon.Horizon",
    "systems": "systems.Systems",
    "less-regret": "recommended.LessRegret",
    "watched": "adaptive_adversaries.Watched",
    "held-out": "held_out.HeldOut",
    "noisy-movies": "noisy_movies.NoisyMovies",
    "rungs": "rungs.Rungs",
    "late-bloomer": "late_bloomer.LateBloomer",
    "many-arms": "many_arms.ManyArms",
}
# Names for several at once.
GROUPS = {
    "beyond": ("less-regret", "watched", "held-out", "noisy-movies", "rungs", "late-bloomer", "many-arms")
}
