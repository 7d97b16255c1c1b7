"""How we read the paper where it leaves something open, and what no simulation of ours can judge. All of it is fixed text."""

from .. import conic, horizon, stochastic
from .claims import MOST_PARTS

PAPER = (
    "Kim, C., Lee, J., Oh, M.-h. (2026). Follow-the-Perturbed-Leader for Decoupled Bandits: Best-of-Both-Worlds and Practicality. "
    "International Conference on Machine Learning."
)

SETUP = (
    "In each round a learner exploits one arm, whose loss it suffers and does not see, and explores one arm, whose loss it sees and does not suffer. "
    "The paper proposes FTPL with Pareto perturbations and an exploration that needs neither $w_t$ nor resampling, proves regret of order $\\sqrt{KT}$ against any adversary and of order $K/\\Delta_{\\min}$ for fixed gaps, "
    "and compares it in simulations with two instances of Decoupled-Tsallis-INF (Rouyer and Seldin 2020): $\\beta = 2/3$, which it calls FTRL and we call Tsallis-INF, and $\\beta = 1$, EXP3. "
    "We wrote all three policies, the environments and the experiments from the text of the paper, and ran the experiments at the sizes of the next table. Appendix E.1 links the program of the authors; we did not consult it. "
    "Policies, environments and seeds are part of the package that made this document."
)

# The last refers to the experiment `baseline`.
RULINGS = (
    "**Rates.** The paper gives $\\eta_t = c K^{1/\\alpha-1/2}/\\sqrt{t}$ with $\\alpha = 3$ and $c = 2$ for FTPL, and $\\eta_t = O(t^{-1/2})$ for the other two. We take $\\eta_t = c K^{1/2-\\beta}/\\sqrt{t}$ for them, with $c = 2$.",
    "**Ties.** The ranks of equal estimates are arbitrary in the paper. Ours share the exploration: arms with equal estimates are explored equally.",
    "**Regret** compares the mean losses of the arms exploited with those of the best fixed arm, as the pseudo-regret of section 2.1 does: Bernoulli noise affects it through what is learned alone. "
    "In every run, all policies meet the same losses, unless the losses react to what is played. Policies are compared run by run.",
    "**Bands** in our figures are 95 % intervals of the mean. The paper shows one standard deviation of the runs.",
    "**Alternating losses.** The first phase is $n = 1$, with means $(0, \\Delta)$, and lasts $\\lfloor 1.6^n \\rfloor = 1$ round.",
    "**Stochastic instances.** $\\mu_1$ and $\\mu_2$ are mean rewards. A loss is one minus a Bernoulli reward.",
    "**Adaptive adversaries.** Theorem 3.1 allows them, and the paper's experiments have none. Two of ours are under “The simplest method”.",
)

JUDGING = (
    "Every empirical sentence of section 4 and appendix E that can be measured is a claim: a statistic, a threshold, and one or more measurements with 95 % intervals, which hold jointly for all parts of a claim (Bonferroni). "
    "Intervals of means are Student's, those of ratios use the delta method. A claim **holds** if every interval lies on its side of the threshold, and **fails** if one lies entirely on the other side; "
    "if some parts hold nevertheless, the verdict says which or how many, and counts undecided parts among the others. Otherwise it is **undecided**: there are too few runs to tell. It is **not judged** without the data or the solver that it is about. "
    f"The tables show the part that is closest to the threshold, or all parts if a claim does not simply hold and has at most {MOST_PARTS}. Thresholds that the paper does not give are ours."
)

READINGS = {
    "adversarial": "The claim is the sentence about the figure of the regret, “our policy achieves lower cumulative regret”.",
    "stochastic-easy": "The paper sets no threshold for “gradually converges”. We call a curve flat if less than "
    f"{stochastic.FLAT:g} of its regret falls in the last quarter of the rounds; a straight line has 0.25.",
    "stochastic-hard": "The paper writes that “it seems more rounds are required for convergence”. We read this strictly: no policy is flat, by the same threshold.",
    "grid": "With the smallest gap and many arms, 10,000 rounds are few to find the best one, and regret is near its highest value, $\\Delta T \\approx 312$. There, a lead is small beside the regret, and many runs are needed to see it.",
    "runtime": "The paper's figure has milliseconds on the authors' machine, so the claims are about slopes and ratios. We judge each sentence twice: for compiled programs, and for steps written in NumPy as in a textbook, where a sort is one call of a library. "
    "About sorting, the paper writes itself that FTRL shows “a similar or slightly less favorable trend”. Each repetition times all programs in turn; a wide range of slopes over repetitions (in the second table) means that the machine was not quiet. Verdicts are about the machine named under “How to repeat it”, and may differ on another.",
    "conic": "Section 4.2 says “increases by at least 100 times”. We read this as the ratio to FTPL that the figure of appendix E.2 shows. The threshold of the last claim is the ratio of the two numbers that the paper gives, "
    f"{conic.PAPER[64]:g} at $K = 64$ and about {conic.PAPER[2]:g} at $K = 2$ (remark 2.1). The text does not say how SCS was called. We call it directly, with power cones, an accuracy of $10^{{-6}}$ and no warm start; "
    "a modelling layer would add to each of its steps, and to those with few arms the most.",
    "movielens": "The text does not specify the oracle beyond double centring and matrix factorisation. Ours: level, user and movie effects and a product of factors, fitted by ridge regression to all ratings, with dimension and penalties chosen on a held-out tenth; "
    "clipped to the scale of stars and rescaled to [0, 1]. Arms are the $K$ most rated movies, and users come in the order of their ratings.",
    "tuned": "The paper sets $c = 2$ for all policies. At that value the weights of Tsallis-INF behave like $(1 + \\eta u/3)^{-3}$, and FTPL's like $(1 + \\eta u)^{-3}$: the first has a third of the effective rate. "
    "Here $c$ is chosen for each policy and instance on one set of seeds, and the claims are judged on another.",
    "baseline": "Follow the leader exploits the smallest sample mean and explores uniformly. It has no guarantee against adversaries. Rouyer and Seldin (2020) name it; the paper has no experiment with it. “Punish last” gives the arm exploited last the loss 1; "
    "“adaptive alternating” moves the level of all losses in reaction to what is exploited, and keeps the gaps.",
    "horizon": "Simulations cannot refute a theorem, and these verdicts are not about the theorems. The bound of theorem 3.2 holds for every $T$, and does not say when regret stops growing: for the hard instance, "
    "$K/\\Delta_{\\min}$ is 2,500 before any constant. "
    f"The first statement is that growth has ended within the rounds that we ran (at most {horizon.FLAT:g} of the regret in the last nine tenths of them), the second that regret on alternating losses grows no faster than $\\sqrt{{KT}}$ at the end of a range. Both thresholds are ours.",
    "systems": "Statements about the other policies that sections 1 and 2 mention. The constants of the hybrid of Jin et al. (2023) are ours, and so is its solver; the paper's “around 130 times slower” is about general convex solvers.",
}

LIMITS = (
    "**Heights of curves.** We had the text of the paper and not the data behind its figures, so no curve is compared with the paper's, only statements about curves.",
    "**Milliseconds.** Times depend on machine and language. Ratios and slopes do too, though less.",
    "**Complexity.** That one implementation is $O(K)$ and the other $O(K \\log K)$ is an argument about programs. Up to $K = 254$ a measurement cannot tell the two apart, as the paper notes itself.",
    "**Settings that the text does not give.** The rates of the other two policies, the oracle of the MovieLens experiment, the order of its users, and how SCS was called. The authors' program, which we did not consult, must have them. Verdicts are about our settings.",
    "**Sentences without a quantity**, such as “the intended robustness across both stochastic and adversarial regimes”.",
    "**Constants of the theorems.** The statements hide them in an $O$. With the constants of the proofs, the bounds lie far above every regret that we measured.",
)

REFERENCES = (
    PAPER,
    "Avner, O., Mannor, S., Shamir, O. (2012). Decoupling exploration and exploitation in multi-armed bandits. International Conference on Machine Learning.",
    "Harper, F. M., Konstan, J. A. (2015). The MovieLens datasets: history and context. ACM Transactions on Interactive Intelligent Systems 5(4).",
    "Honda, J., Ito, S., Tsuchiya, T. (2023). Follow-the-perturbed-leader achieves best-of-both-worlds for bandit problems. Algorithmic Learning Theory.",
    "Jin, T., Liu, J., Luo, H. (2023). Improved best-of-both-worlds guarantees for multi-armed bandits: FTRL with general regularizers and multiple optimal arms. Advances in Neural Information Processing Systems.",
    "O'Donoghue, B., Chu, E., Parikh, N., Boyd, S. (2016). Conic optimization via operator splitting and homogeneous self-dual embedding. Journal of Optimization Theory and Applications 169(3).",
    "Rouyer, C., Seldin, Y. (2020). Tsallis-INF for decoupled exploration and exploitation in multi-armed bandits. Conference on Learning Theory.",
    "Zimmert, J., Seldin, Y. (2021). Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits. Journal of Machine Learning Research 22(28).",
)
