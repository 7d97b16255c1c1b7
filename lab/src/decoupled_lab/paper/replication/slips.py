"""The slips that we found in the paper's text. Each has a few lines of code that show it, and a test runs them."""

from typing import NamedTuple


class Slip(NamedTuple):
    """A slip: where it is, what is printed, what should be, and how we know."""

    place: str
    printed: str
    meant: str
    known: str
    code: tuple[str, ...]  # its last line is an expression
    shows: str  # the value of that expression


# Numbers of equations, lemmas and sections are those of the paper. Names in the code: `dc` is the package, `theory` its module.
SLIPS = (
    Slip(
        "Section 4.1, and again in appendix E.1",
        "The loss estimator is updated only for “the selected arm $i_t$”, and its new rank is $\\sigma_{t+1,i_t}$.",
        "The explored arm $j_t$, with the rank $\\sigma_{t+1,j_t}$.",
        "Line 7 of algorithm 1 adds to the estimate of $j_t$ alone, and the loss of $i_t$ is never seen. With $j_t$, the two implementations of section 4.1 give the same trajectory to the bit "
        "(`core/tests/policies/test_contract.py`).",
        (
            "learner = dc.FTPL().start(arms=4, seed=0)",
            "decision = learner.decide()",
            "learner.observe(decision, loss=1.0)",
            "learner.estimates().nonzero()[0].tolist() == [decision.explore]",
        ),
        "True",
    ),
    Slip(
        "Appendix A.2, equation (14) and the display below it (the proof of lemma 3.6)",
        "$I_{i,\\alpha+2}(\\lambda^*) \\le \\frac{e}{\\alpha+1} \\frac{1}{(1+\\underline{\\lambda}_i)\\, i}$, and below it $1/p_{t,i} = \\sum_j q_{t,j} \\sqrt{i (1+\\eta_t \\hat{\\underline{L}}_{t,i})}$ where the gap limits $q_{t,i}$.",
        "$I_{i,\\alpha+2}(\\lambda^*) \\le \\frac{e}{\\alpha+1} (1+\\underline{\\lambda}_i)^{-(\\alpha+1)}$, and $1/p_{t,i} = \\sum_j q_{t,j} (1+\\eta_t \\hat{\\underline{L}}_{t,i})^{(\\alpha+1)/2}$. The product is at most $\\frac{e}{\\alpha+1} \\sum_j q_{t,j} q_{t,i}$, and the lemma follows as stated.",
        "Equation (14) drops the factor $\\min(1, i/(1+\\underline{\\lambda}_i)^{\\alpha})$ of the bound on the incomplete gamma function in the display above it. What remains is true, but not below $q_{t,i}^2$ where it is used. Along trajectories "
        "(`lab/tests/theory/test_lemma_checks.py`) the printed step fails, and the corrected one does not.",
        (
            "world = dc.environments.Bernoulli([0.9, 0.3, 0.2])",
            "report = theory.check(world, dc.FTPL(alpha=2.0), horizon=300)",
            'printed = report["where the gap binds: 1 / ((1 + eta u) rank) <= q^2"]',
            'corrected = report["where the gap binds: (1 + eta u)^-(alpha + 1) <= q^2"]',
            "printed.violations > 0, corrected.violations",
        ),
        "(True, 0)",
    ),
    Slip(
        "Appendix A.3, the bounds by $k_{\\alpha}$ (the proof of lemma 3.5)",
        "With $x_j = (z + \\eta_t \\hat{\\underline{L}}_{t,j})^{-\\alpha}$, $\\prod_{j \\ne i} (1 - x_j)$ is replaced by $\\exp(-\\sum_{j \\ne i} (1 - x_j))$. The next line says $e\\alpha \\int_1^\\infty \\sum_{i \\ne i^*} \\alpha x_i e^{-k_{\\alpha}(z)} dz \\le e \\int_1^\\infty k_{\\alpha}(z) e^{-k_{\\alpha}(z)} dz$.",
        "$\\exp(-\\sum_{j \\ne i} x_j) \\le e \\cdot e^{-k_{\\alpha}(z)}$, and then $e\\alpha \\int_1^\\infty \\sum_{i \\ne i^*} x_i e^{-k_{\\alpha}(z)} dz \\le e\\alpha \\int_1^\\infty k_{\\alpha}(z) e^{-k_{\\alpha}(z)} dz$. The proof goes on from this integral, so the lemma stands.",
        "$1 - x \\le e^{-x}$ gives the second form. With $K = 3$, $\\alpha = 3$ and the gaps 0, 10 and 10, these are the integral to be bounded, the printed bound, which is below it, and the corrected one.",
        (
            "from math import exp, inf",
            "from scipy.integrate import quad",
            "x = lambda z, gap: (z + gap) ** -3.0",
            "side = lambda factor: quad(lambda z: 6 * x(z, 10) * factor(x(z, 0), x(z, 10)), 1, inf)[0]",
            "product, corrected = lambda a, b: (1 - a) * (1 - b), lambda a, b: exp(-a - b)",
            "printed = lambda a, b: exp(-(1 - a) - (1 - b))",
            "[round(side(each), 4) for each in (product, printed, corrected)]",
        ),
        "[0.0229, 0.0037, 0.0233]",
    ),
    Slip(
        "Appendix C, “The choice of $c$”",
        "$f(c) \\simeq 25799.360$ at $c^* \\simeq 0.128$.",
        "25799.360 is twice the square root of the right side of equation (36): the constant in front of $\\sqrt{(K/\\Delta_{\\min}) \\sum_i 1/\\Delta_i}$ in equation (34). "
        "The right side of (36) itself is about $1.664 \\times 10^8$ there. The minimiser $c^*$ is the same.",
        "We evaluated (34) and (36) with $\\zeta = 0.1$ (`lab/tests/theory/test_regret_bounds.py`).",
        ("[round(value, 3) for value in theory.bounds.optimal_c(zeta=0.1)]",),
        "[0.128, 25799.36]",
    ),
    Slip(
        "Equation (10), the event $D_t$, and lemma D.2",
        "$D_t$ is the event that $\\sum_{i \\ne i^*} (2^{1/\\alpha} + \\eta_t \\hat{\\underline{L}}_{t,i})^{-\\alpha} \\le \\frac{1}{2}$, which “implies that $\\hat{\\underline{L}}_{t,i^*} = 0$”.",
        "A strict inequality. With it the best arm must lead, and lemmas D.2 and D.3 hold.",
        "With $K = 2$ and the rival ahead, its gap is 0 and the sum is exactly $\\frac{1}{2}$: $D_t$ holds as printed, $i^*$ does not lead, and $w_{t,i^*} \\ge 1/(2e)$ fails. "
        "At $\\eta_t \\hat{\\underline{L}}_{t,i^*} = 50$ the exact probability is $7 \\times 10^{-6}$ (`lab/tests/theory/test_lemma_checks.py`). With more arms the sum is above $\\frac{1}{2}$ and nothing happens.",
        (
            "report = theory.inspect([50.0, 0.0], eta=1.0)",
            'line = report["on D_t with <=: w_best >= 1 / (2 e)"]',
            "line.violations, float(f'{line.witness.right:.0e}')",
        ),
        "(1, 7e-06)",
    ),
    Slip(
        "Lemma D.1, case (i) of its proof",
        "The derivative of $\\phi_{i^*}(\\eta_t(\\hat{L}_t + x e_{i^*}))$ in $x$ has the product $\\prod_{j \\ne i, i^*} (1 - F(z + \\eta_t(\\hat{\\underline{L}}_{t,j} - x)))$.",
        "$\\prod_{j \\ne i, i^*} F(z + \\eta_t(\\hat{\\underline{L}}_{t,j} - x))$. The next line bounds this product, and the rest of the case stands.",
        "$\\phi_{i^*}$ is the integral of a product of $F$. With $K = 3$, $\\alpha = 3$, $\\eta_t = 1$, gaps of 1 and $x = 0$, these are a quotient of differences, the printed derivative and the corrected one, all with the sign of the display.",
        (
            "from math import inf",
            "from scipy.integrate import quad",
            "f, F = lambda z: 3 * z**-4, lambda z: 1 - z**-3",
            "over = lambda factor: quad(lambda z: f(z) * factor(z + 1), 1, inf)[0]",
            "quotient = (over(lambda z: F(z) ** 2) - over(lambda z: F(z - 1e-5) ** 2)) / 1e-5",
            "printed, corrected = over(lambda z: 2 * f(z) * (1 - F(z))), over(lambda z: 2 * f(z) * F(z))",
            "[round(each, 4) for each in (quotient, printed, corrected)]",
        ),
        "[0.1962, 0.0208, 0.1962]",
    ),
    Slip(
        "Lemma D.1, case (ii) of its proof",
        "Where $p_{t,i^*}^{-1} > \\zeta/\\eta_t$, lemma 11 of Honda et al. (2023) bounds $\\mathrm{E}[1[\\hat{\\ell}_{t,i^*} > \\zeta/\\eta_t]\\, \\hat{\\ell}_{t,i^*} \\mid \\hat{L}_t]$, and the sum over all rounds is $O(c^2 K^{2/\\alpha-1})$, equation (37).",
        "In this case the left side can be the loss itself, so 1 is the bound for a round. The case needs $\\sum_j q_{t,j} > \\zeta/\\eta_t$, which by equation (17) ends after $4 \\alpha^2 c^2 K^{1/\\alpha} / ((\\alpha-1)^2 \\zeta^2)$ rounds, and equation (37) becomes $O(c^2 K^{1/\\alpha})$. "
        "In order this is below $K/\\Delta_{\\min}$, so theorem 3.2 stands.",
        "The lemma of Honda et al. is about geometric resampling, where the estimate is random even if the arm is given. Here, on $D_t$, $\\hat{\\ell}_{t,i^*} = \\ell_{t,i^*} \\sum_j q_{t,j}$ whenever $i^*$ is explored. "
        "The borrowed bound falls below 1 once $\\zeta/\\eta_t$ exceeds 5.63, and on $D_t$ the sum of $q$ gets there from 331 arms on at $\\alpha = 3$. We know of no state in which the statement of the lemma fails (`lab/tests/theory/test_lemma_checks.py`).",
        (
            "from decoupled_lab.theory.lemmas.best_arm import edge_of_event, resampling_tail",
            "sums = [edge_of_event(arms, alpha=3.0).surrogate_sum for arms in (330, 331, 2_000)]",
            "[resampling_tail(each) < 1.0 for each in sums]",
        ),
        "[False, True, True]",
    ),
    Slip(
        "Equation (3), the exploration of Avner et al. (2012)",
        "$p_{t,i} = \\sqrt{w_{t,i}} / \\sum_{j=1}^K \\sqrt{w_{t,i}}$.",
        "$p_{t,i} = \\sqrt{w_{t,i}} / \\sum_{j=1}^K \\sqrt{w_{t,j}}$.",
        "As printed, the fraction is $1/K$ for every arm. The sentence before it asks for the $p$ that minimises $\\sum_i w_{t,i}/p_{t,i}$, which is the second form, and so is equation (4) at $\\beta = 1$, as section 2.2 notes.",
        (
            "learner = dc.AvnerExp3(horizon=100).start(arms=3, seed=0)",
            "learner.observe(learner.decide(), loss=1.0)",
            "root = learner.exploitation_probabilities() ** 0.5",
            "bool(abs(learner.exploration_probabilities() - root / root.sum()).max() < 1e-12)",
        ),
        "True",
    ),
)
