"""Break each kernel in turn and check that a test fails: `make mutations`.

Each entry of MISTAKES is a small mistake in one place, most of them of two percent. The script edits a copy of the
package and runs the tests that guard kernels until the first failure: first those nearest to the mistake, then all.
It lists mistakes that no test notices. It is not part of `make test`, because it takes hours of processor time.

    python lab/tests/mutations.py                       # all, as many at once as there are processors
    python lab/tests/mutations.py policies/ladder fade      # those with one of these words in the file name or the text
    python lab/tests/mutations.py --jobs 4 --out found.jsonl

What was found is added to `--out`, a line of JSON for each mistake. Run again, the script leaves out what the file
says of the same sources and tests, so that an interrupted run goes on where it was.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# The fastest first.
GUARDS = (
    "core/tests/simulation/test_parity.py",
    "core/tests/environments",
    "core/tests/policies",
    "core/tests/learner/test_coupled.py",
    "core/tests/learner/test_arms.py",
    "core/tests/learner/test_baseline.py",
    "core/tests/learner/test_model.py",
    "core/tests/learner/test_keys.py",
    "core/tests/kernels",
    "lab/tests/theory/test_probabilities.py",
    "core/tests/policies/test_contract.py",
    "core/tests/simulation/gpu",
)

# Files whose mistakes show in the contract suite, each with the policy to run it for.
CONTRACTS = {
    "policies/centred/kernels.py": "CentredFTPL",
    "kernels/surrogates.py": "FTPL",
    "policies/tsallis.py": "(TsallisINF and not Coupled)",
    "policies/avner.py": "AvnerExp3",
    "policies/coupled_exp3.py": "CoupledExp3",
    "policies/coupled_ftpl.py": "CoupledFTPL",
    "policies/coupled_tsallis.py": "CoupledTsallisINF",
    "policies/exp3.py": "(Exp3 and not Coupled)",
    "policies/ftpl.py": "(FTPL and not Coupled and not Centred)",
    "policies/jin.py": "JinHybrid",
    "policies/means.py": "(FollowTheLeader or UCB1 or ThompsonSampling)",
}
# The nearest tests of a file or folder, where they are not in the test file of the same name.
NEAREST = {
    "movielens/": "lab/tests/test_movielens.py",
    "policies/contextual/": "core/tests/policies/test_contextual.py",
    "policies/ladder/": "core/tests/learner/test_ladder_learner.py core/tests/policies/test_ladder.py",
    "policies/strata/": "core/tests/policies/test_strata.py core/tests/policies/test_ftpl_strata.py core/tests/policies/test_ties.py",
    "kernels/winner_law.py": "core/tests/kernels/test_winner_law.py lab/tests/theory/test_probabilities.py",
    "kernels/feedback_delay.py": "core/tests/simulation/test_traffic.py",
    "kernels/betting.py": "core/tests/inference/test_pairs.py core/tests/inference/test_outs.py core/tests/inference/test_singles.py",
    "kernels/single_bets.py": "core/tests/inference/test_singles.py",
    "kernels/worlds.py": "core/tests/simulation/test_parity.py core/tests/simulation/test_traffic.py",
    "kernels/random/keyed.py": "core/tests/learner/test_keys.py",
    "kernels/random/": "core/tests/kernels/random core/tests/environments core/tests/simulation/gpu/test_gpu_planning.py",
    "kernels/dispatch.py": "core/tests/policies/test_forgetting.py",
    "kernels/observed.py": "core/tests/inference/test_pairs.py core/tests/inference/test_outs.py",
    "kernels/stakes.py": "core/tests/inference/test_outs.py",
    "kernels/pair_bets.py": "core/tests/inference/test_pairs.py",
    "kernels/out_bets.py": "core/tests/inference/test_outs.py",
    "kernels/alarm_bets.py": "core/tests/inference/test_verdict.py",
    "learner/": "core/tests/learner/test_arms.py core/tests/learner/test_baseline.py core/tests/learner/test_model.py",
    "simulation/gpu/memory.py": "core/tests/simulation/gpu/test_gpu_planning.py",
    "simulation/gpu/": "core/tests/simulation/gpu",
}


def path_of(root: Path, file: str) -> Path:
    """The file of a mistake in a copy of the repository: in core, or in lab."""
    return (
        root
        / ("lab/src/decoupled_lab" if file.startswith("movielens/") else "core/src/decoupled")
        / file
    )


def nearest(file: str) -> list[str]:
    """The tests most likely to notice a mistake in a file. They run first, because compiling takes most of the time."""
    if file in CONTRACTS:
        words = f"(twins or unbiased or laws) and {CONTRACTS[file]}"
        return ["core/tests/policies/test_contract.py", "-k", words]
    for start, tests in NEAREST.items():
        if file.startswith(start):
            return tests.split()
    path = Path("tests", file)
    same = path.with_name(f"test_{path.name}")
    return [str(same)] if (ROOT / same).exists() else []


# fmt: off
MISTAKES = [
    ("kernels/random/sampling.py", "power(best + shift, alpha)  # one", "power(best + shift, 1.02 * alpha)  # one"),
    ("kernels/random/sampling.py", "return (1.0 - largest) / largest", "return 1.02 * (1.0 - largest) / largest"),
    ("kernels/random/sampling.py", "target = uniform(stream)", "target = 0.98 * uniform(stream)"),
    ("kernels/random/sampling.py", "return math.log(1.0 - chance)", "return 1.02 * math.log(1.0 - chance)"),
    ("kernels/random/sampling.py", "drawn_weight / explore_sum", "0.98 * drawn_weight / explore_sum"),
    ("kernels/random/keyed.py", "math.expm1(-math.log(tail) / alpha)", "math.expm1(-math.log(tail) / (1.02 * alpha))"),
    ("kernels/random/keyed.py", "tail * power(best + shift, alpha) < 1.0", "tail * power(best + shift, alpha) < 0.98"),
    ("kernels/random/keyed.py", "math.log(unit) / weights[index]", "math.log(unit) / weights[index] ** 1.02"),
    ("kernels/random/keyed.py", "serial * _PURPOSES + purpose", "serial * _PURPOSES"),
    ("policies/ladder/means.py", "== least and precedence[arm] < precedence[first]", "== least and precedence[arm] < 0.0"),
    ("policies/contextual/kernels.py", "= 0.5 * earned * of_ladders", "= 0.49 * earned * of_ladders"),
    ("policies/contextual/kernels.py", "scalars[S.outer_chance + rung] * (surprise * weight)", "scalars[S.outer_chance + rung] * surprise"),
    ("policies/ladder/baselines.py", "least + law[arm] * (half_unit", "least + 1.02 * law[arm] * (half_unit"),
    ("policies/ladder/means.py", "fade *= 1.0 - recency", "fade *= 1.0 - 1.02 * recency"),
    ("policies/ladder/means.py", "CHALLENGERS_SHARE = 0.375", "CHALLENGERS_SHARE = 0.37"),
    ("policies/ladder/kernels.py", "origin != scalars[S.version]", "origin > scalars[S.version]"),
    ("policies/contextual/segments.py", "(seen * variety + noise)", "(seen * variety + 1.02 * noise)"),
    ("policies/contextual/regression.py", "RIDGE = 1.0", "RIDGE = 1.02"),
    ("policies/contextual/state.py", "scalars[own_place(kept)] = scalars[at + kept]", "scalars[own_place(kept)] = 0.98 * scalars[at + kept]"),
    ("kernels/random/stream.py", "int((1.0 - uniform(stream)) * count)", "int((1.0 - uniform(stream) ** 1.02) * count)"),
    ("kernels/order/ranked.py", "goal = rank_of(ranked, order, after, arm, 0)", "goal = 0"),
    ("kernels/order/ranked.py", "order[k] = order[k + 1]", "order[k] = order[k]"),
    ("kernels/order/tiers.py", "goal -= 1  # the count", "goal -= 0  # the count"),
    ("kernels/order/tiers.py", "[there + 1 : here + 1], 1)", "[there + 1 : here + 1], 0)"),
    ("policies/strata/surrogate.py", "below(size, stream)\n        if", "below(size - 1, stream)\n        if"),
    ("policies/strata/surrogate.py", "uniform(stream) * envelope", "0.98 * uniform(stream) * envelope"),
    ("policies/strata/surrogate.py", "mass += size * surrogate_at", "mass += 1.02 * size * surrogate_at"),
    ("policies/strata/surrogate.py", "return mass / (end - first)", "return mass / (end - first + 0.02)"),
    ("policies/strata/surrogate.py", "half + first / 12.0", "half + first / 11.0"),
    ("policies/strata/surrogate.py", "if end > high:", "if end > high + 1:"),
    ("policies/strata/leader.py", "rank = first + below(end - first, stream)", "rank = first + below(end - first - 1, stream)"),
    ("policies/strata/leader.py", "after = before + weight * (loss - own)", "after = before + 0.98 * weight * (loss - own)"),
    ("policies/tsallis.py", "first_inverse = second_base * both", "first_inverse = 1.001 * second_base * both"),
    ("policies/tsallis.py", "_LAST_STEP = 1e-8", "_LAST_STEP = 1e-2"),
    ("kernels/winner_law.py", "share = 0.5 * width", "share = 0.51 * width"),
    ("kernels/winner_law.py", "_FRECHET_FLOOR = 40.0", "_FRECHET_FLOOR = 4.0"),
    ("kernels/powers.py", "return inverse * math.sqrt(inverse)", "return 1.02 * inverse * math.sqrt(inverse)"),
    ("kernels/random/sampling.py", "1.0 if uniform(noise) <= mean", "1.0 if uniform(noise) <= 0.98 * mean"),
    ("kernels/random/sampling.py", "return first / (first + second)", "return first / (first + 1.02 * second)"),
    ("kernels/worlds.py", "regret: float = rows[row, arm]", "regret: float = 0.98 * rows[row, arm]"),
    ("kernels/feedback_delay.py", "<= rules.explore_share", "<= 0.98 * rules.explore_share"),
    ("kernels/feedback_delay.py", "<= rules.missing", "<= 1.02 * rules.missing"),
    ("kernels/feedback_delay.py", "int(math.log(number) / rules.tail)", "int(1.02 * math.log(number) / rules.tail)"),
    ("kernels/feedback_delay.py", "(1.0 - number) * rules.span", "0.98 * (1.0 - number) * rules.span"),
    ("kernels/feedback_delay.py", "(t + delay) % slots", "(t + delay + 1) % slots"),
    ("kernels/feedback_delay.py", "        _restore(state, queue, slot)\n", ""),
    ("kernels/feedback_delay.py", "_NUMBERS_A_ROUND = 5", "_NUMBERS_A_ROUND = 4"),
    ("kernels/feedback_delay.py", "queue.floats[slot, _WEIGHT] = weight", "queue.floats[slot, _WEIGHT] = 1.02 * weight"),
    ("kernels/worlds.py", "loss: float = world.losses[arm]", "loss: float = 0.98 * world.losses[arm]"),
    ("kernels/surrogates.py", "x = 1.0 + eta *", "x = 1.0 + 1.02 * eta *"),
    ("kernels/surrogates.py", "mean = tied_share / (end - first)", "mean = tied_share / (end - first + 0.02)"),
    ("kernels/surrogates.py", "ties += ranked[k + 1] == ranked[k]", "ties += 0"),
    ("policies/centred/kernels.py", "= params.c * state.scalars", "= 1.02 * params.c * state.scalars"),
    ("policies/centred/kernels.py", "= eta * params.exploit_ratio", "= 1.02 * eta * params.exploit_ratio"),
    ("policies/centred/kernels.py", "params.gate * eta", "1.3 * params.gate * eta"),
    ("policies/centred/kernels.py", "+= params.mean_rate *", "+= 1.02 * params.mean_rate *"),
    ("policies/centred/kernels.py", "INVERSE_VARIANCE = 4.0", "INVERSE_VARIANCE = 4.08"),
    ("policies/tsallis.py", "- 1.0) <= SOLVED", "- 1.0) < 0.0"),
    ("policies/ftpl.py", "after = before + weight * loss", "after = before + 0.98 * weight * loss"),
    ("policies/centred/kernels.py", "(loss - baseline[arm])", "(loss - 0.98 * baseline[arm])"),
    ("kernels/order/ranked.py", "value = ranked[k] + lifts[arm]", "value = ranked[k] + 0.98 * lifts[arm]"),
    ("kernels/order/ranked.py", "last = value > rival", "last = value < rival"),
    ("kernels/order/ranked.py", "        _settle(ranked, order)", "        pass"),
    ("policies/strata/leader.py", "bar = least *", "bar = 1.3 * least *"),
    ("policies/coupled_tsallis.py", "(loss - floats[R.baseline, arm])", "(loss - 0.98 * floats[R.baseline, arm])"),
    ("policies/strata/leader.py", "= eta * params.exploit_ratio", "= 1.02 * eta * params.exploit_ratio"),
    ("policies/tsallis.py", "gap_rate = params.one_minus_beta *", "gap_rate = 1.02 * params.one_minus_beta *"),
    ("policies/exp3.py", "0.5 * eta", "0.51 * eta"),
    ("policies/avner.py", "0.5 * learning_rate", "0.51 * learning_rate"),
    ("policies/means.py", "[FOLLOW.sums, arm] += loss", "[FOLLOW.sums, arm] += 0.98 * loss"),
    ("policies/exp3.py", "math.exp(half_rate", "math.exp(1.02 * half_rate"),
    ("policies/jin.py", "slope * (problem.gaps[i] + level", "slope * (problem.gaps[i] + 1.001 * level"),
    ("policies/jin.py", "_LAST_STEP = 1e-7", "_LAST_STEP = 1e-3"),
    ("policies/jin.py", "scale = math.sqrt(rate /", "scale = math.sqrt(1.02 * rate /"),
    ("policies/avner.py", "2.0 * math.log(arms)", "2.04 * math.log(arms)"),
    ("policies/avner.py", "+ mixing / len(exploit)", "+ 0.98 * mixing / len(exploit)"),
    ("policies/jin.py", "max(1.0, floor *", "max(1.0, 1.02 * floor *"),
    ("policies/jin.py", "2.0 / 3.0 * params.theta", "2.04 / 3.0 * params.theta"),
    ("policies/top_two.py", "+ 1  # with this one", "+ 2  # with this one"),
    ("policies/top_two.py", "seen_at[i] < seen_at[first]", "seen_at[i] > seen_at[first]"),
    ("policies/top_two.py", "gap / math.sqrt(1.0 /", "gap / math.sqrt(1.02 /"),
    ("kernels/random/sampling.py", "remaining = max(life -", "remaining = max(0.98 * life -"),
    ("kernels/random/sampling.py", "life = -math.log(uniform(stream))\n        # W", "life = -1.02 * math.log(uniform(stream))\n        # W"),
    ("kernels/winner_law.py", "exponent += tail", "exponent += 1.001 * tail"),
    ("policies/coupled_ftpl.py", "tail = -math.log(uniform(stream)) / among", "tail = -1.02 * math.log(uniform(stream)) / among"),
    ("policies/coupled_ftpl.py", "life = (among - 1) * tail", "life = 0.98 * (among - 1) * tail"),
    ("policies/coupled_ftpl.py", "mark *= math.exp((among - 1)", "mark *= math.exp(0.98 * (among - 1)"),
    ("policies/coupled_ftpl.py", "draws += 1.0", "draws += 1.02"),
    ("kernels/winner_law.py", "- log_above\n", "- 0.99 * log_above\n"),
    ("policies/coupled_ftpl.py", "among = rank + 1 if", "among = rank + 2 if"),
    ("policies/coupled_ftpl.py", "after = before + weight * loss", "after = before + 0.98 * weight * loss"),
    ("policies/coupled_tsallis.py", "least = scalars[S.eta] *", "least = 1.3 * scalars[S.eta] *"),
    ("policies/coupled_tsallis.py", "+= floats[R.baseline, i]", "+= 0.98 * floats[R.baseline, i]"),
    ("policies/coupled_exp3.py", "math.exp(eta *", "math.exp(1.02 * eta *"),
    ("kernels/dispatch.py", "0.0 < period <= before", "0.0 < period <= before - 1.0"),
    ("kernels/dispatch.py", "state.floats[:] = 0.0", "state.floats[0] = 0.0"),
    ("kernels/dispatch.py", "shrunk = discount * state", "shrunk = 1.02 * discount * state"),
    ("kernels/dispatch.py", "scalars[number - rows] *= discount", "scalars[number - rows] *= 0.98 * discount"),
    ("kernels/dispatch.py", "1.0 + discount * before", "1.0 + 0.98 * discount * before"),
    ("policies/jin.py", 'fading = ("estimates", "spread")', 'fading = ("estimates",)'),
    ("policies/means.py", "width = params.c *", "width = 1.02 * params.c *"),
    ("policies/means.py", "weight = 2.0 + state", "weight = 2.1 + state"),
    ("learner/baselines.py", "self.own().write(self._state, places, values)", "self.own().write(self._state, places, 0.0 * values)"),
    ("learner/baselines.py", "self._known(*self.read())", "None"),
    ("learner/baselines.py", "places if len(within) == len(places) else places[within]", "within"),
    ("learner/policy_state.py", "0, 0.0, loss, baseline", "0, 0.0, loss"),
    ("learner/policy_state.py", "self.serials.first_from(eligible)", "eligible"),
    ("learner/core.py", "serials.id_at(explore)", "explore"),
    ("learner/core.py", "parts.pending_store.with_arm(parts.policy_state.serials.n_ever)", "parts.pending_store"),
    ("kernels/observed.py", "1.0 / (rho * level + (1.0 - rho) * high)", "1.05 / (rho * level + (1.0 - rho) * high)"),
    ("kernels/observed.py", "1.0 / (1.0 - rho * level - (1.0 - rho) * low)", "1.05 / (1.0 - rho * level - (1.0 - rho) * low)"),
    ("kernels/observed.py", "1.0 / (rho * level + (1.0 - rho) * high)", "1.0"),
    ("kernels/observed.py", "standing.counts[one] > standing.counts[two]", "standing.counts[one] < standing.counts[two]"),
    ("kernels/observed.py", "(label - expected)", "0.98 * (label - expected)"),
    ("kernels/betting.py", "seen.laws[law, arm]", "seen.laws[max(law - 1, 0), arm]"),
    ("kernels/betting.py", "(total + 0.5) / (count + 1.0)", "(total + 0.52) / (count + 1.0)"),
    ("kernels/stakes.py", "1.0 + stakes[k] * z", "1.02 + stakes[k] * z"),
    ("kernels/pair_bets.py", "(1.0 + pairs.stakes[k] * gain)", "(1.02 + pairs.stakes[k] * gain)"),
    ("kernels/pair_bets.py", "opposite = -_slot_weight", "opposite = -0.98 * _slot_weight"),
    ("kernels/pair_bets.py", "first if first < second else second", "second if first < second else first"),
    ("kernels/out_bets.py", "z = sign * weight", "z = sign * 0.98 * weight"),
    ("kernels/out_bets.py", "standing.means[arm] < standing.means[leader]", "standing.means[arm] > standing.means[leader]"),
    ("kernels/out_bets.py", "goal + lacking", "goal"),
    ("kernels/alarm_bets.py", "(1.0 + alarm.sums[place, k])", "(0.98 + alarm.sums[place, k])"),
    ("policy.py", "np.argmin(self.layout", "np.argmax(self.layout"),
    ("environments/adaptive.py", "out[punished] = 1.0", "out[punished] = 0.98"),
    ("environments/adaptive.py", "1 if exploit == int(params.best) else 0", "0 if exploit == int(params.best) else 1"),
    ("movielens/environment.py", "rows = 1.0 - oracle", "rows = 0.98 - oracle"),
    ("movielens/environment.py", "default_rng(self.seed)", "default_rng(0)"),
    ("movielens/oracle.py", "np.full(1 + users + movies, penalty)", "np.full(1 + users + movies, 1.02 * penalty)"),
    ("movielens/oracle.py", "] += penalty", "] += 1.02 * penalty"),
    ("movielens/oracle.py", "argsort(ratings.times,", "argsort(-ratings.times,"),
    ("movielens/files.py", "if digest == publication.sha256:", "if digest:"),
    ("base/turns.py", "if self._owner == thread:", "if False:"),
    ("base/turns.py", "if self._needs_recovery:", "if False:"),
    ("learner/core.py", "if self._is_updating:", "if False:"),
    ("kernels/random/stream.py", "run_factor * _BLEND_STEP & _WORD", "run_factor * _DRAW_STEP & _WORD"),
    ("simulation/gpu/kernels.py", "        for number in range(me, regret.shape[0], cuda.gridsize(1)):\n            fill_stream(pool, first + number, LOSS_NOISE, noise)\n", "        for number in range(me, regret.shape[0], cuda.gridsize(1)):\n            fill_stream(pool, first, LOSS_NOISE, noise)\n"),
    ("simulation/gpu/kernels.py", "            begin(state, initial, draws)\n            suffered", "            suffered"),
    ("simulation/gpu/kernels.py", "sums[arm] = 0.0", "pass"),
    ("simulation/gpu/kernels.py", "remembered[place] = first_floats[place]", "pass"),
    ("simulation/gpu/kernels.py", "(0, arm), int64(played[0, arm])", "(0, arm), int64(played[1, arm])"),
    ("simulation/gpu/launch.py", "range(0, len(runs), most)", "range(0, len(runs), most + 1)"),
    ("simulation/gpu/launch.py", "if outside[0]:", "if False:"),
    ("simulation/gpu/memory.py", "runs_a_thread = MOST_COUNT // (", "runs_a_thread = 2 * MOST_COUNT // ("),
]
# fmt: on


NO_PLUGINS = ("-p", "no:xdist", "-p", "no:cacheprovider")
running: set[subprocess.Popen[bytes]] = set()


class Mistake(NamedTuple):
    """A place in a file of the package, and the wrong text that replaces it."""

    file: str
    right: str
    wrong: str


SOUND = Mistake(
    "__init__.py", "", ""
)  # without a mistake no test may fail, or the others say nothing


class Found(NamedTuple):
    """Whether a test noticed, and which; or why the mistake could not be made."""

    state: str  # of a mistake "noticed", "MISSED" or "NOT FOUND"; without one "passes" or "FAILS"
    by: str = ""


def noticed_by(copy: Path, tests: Sequence[str], limit: float) -> str | None:
    """The first test that fails, or None. A run that does not end fails too: a broken sampler may reject for ever."""
    # An empty choice of marks: a long check may be the one that notices.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "", *NO_PLUGINS, *tests]
    # A cache of its own: other copies break other kernels, and all of it is removed with the copy.
    apart = {
        "NUMBA_CACHE_DIR": str(copy / "numba"),
        "PYTHONPATH": os.pathsep.join(str(copy / each) for each in ("core/src", "lab/src")),
    }
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, cwd=copy, env={**os.environ, **apart, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        running.add(process)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return f"no end after {limit:g} s: {' '.join(tests)}"
        finally:
            running.discard(process)
            with suppress(ProcessLookupError):  # what the tests have started
                os.killpg(process.pid, signal.SIGKILL)
        said.seek(0)
        lines = said.read().splitlines()
    if code in (0, 5):  # 5: no test has these words in its name
        return None
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else f"pytest ended with {code}: {' '.join(lines[-3:])}"


def tried(mistake: Mistake, copy: Path, limit: float) -> Found:
    """Make a mistake in a copy, run the tests, and undo it."""
    path = path_of(copy, mistake.file)
    source = path.read_text() if path.exists() else ""
    if mistake != SOUND and source.count(mistake.right) != 1:
        return Found("NOT FOUND", mistake.right)
    path.write_text(source.replace(mistake.right, mistake.wrong))
    try:
        tests = nearest(mistake.file)
        by = (noticed_by(copy, tests, limit) if tests else None) or noticed_by(copy, GUARDS, limit)
    finally:
        path.write_text(source)
        shutil.rmtree(copy / "numba", ignore_errors=True)
    if mistake == SOUND:
        return Found("FAILS", by) if by else Found("passes")
    return Found("noticed", by) if by else Found("MISSED")


def digest() -> str:
    """The sources and the tests as they are."""
    files = sorted(
        path for room in ("core", "lab", "tests") for path in (ROOT / room).rglob("*.py")
    )
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def found_before(out: Path, of: str) -> dict[Mistake, Found]:
    """What a file says of these sources and tests."""
    rows = map(json.loads, out.read_text().splitlines()) if out.exists() else ()
    return {
        Mistake(*row["mistake"]): Found(row["state"], row["by"]) for row in rows if row["of"] == of
    }


def try_all(
    mistakes: Sequence[Mistake], jobs: int, limit: float
) -> Iterator[tuple[Mistake, Found]]:
    """Several mistakes at once, each in a copy of the package that no other has."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for copy in (Path(folder, str(number)) for number in range(min(jobs, len(mistakes)))):
            ignored = shutil.ignore_patterns(".*", "out", "site", "dist", "__pycache__")
            copies.put(Path(shutil.copytree(ROOT, copy, ignore=ignored)))

        def in_a_copy(mistake: Mistake) -> Found:
            copy = copies.get()
            try:
                return tried(mistake, copy, limit)
            finally:
                copies.put(copy)

        waiting = {pool.submit(in_a_copy, each): each for each in mistakes}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:  # such as Ctrl-C, which does not reach the tests
            pool.shutdown(wait=False, cancel_futures=True)
            for process in [*running]:
                process.kill()
            raise


def main() -> int:
    """Try every mistake; return 1 if a test missed one."""
    parser = argparse.ArgumentParser(
        description="Break each kernel in turn and check that a test fails."
    )
    add = parser.add_argument
    add("words", nargs="*", help="choose mistakes by a part of the file name or the text")
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="how many at once; else all processors",
    )
    add(
        "--out",
        type=Path,
        default=ROOT / "out" / "mutations.jsonl",
        help="the file to add results to",
    )
    add(
        "--limit",
        type=float,
        default=1800.0,
        help="seconds after which a run of tests counts as failed",
    )
    given = parser.parse_args()
    mistakes = [SOUND, *map(Mistake._make, MISTAKES)]
    words = given.words or [""]
    chosen = [each for each in mistakes if any(word in " ".join(each) for word in words)]
    of = digest()
    found = found_before(given.out, of)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for mistake, result in try_all(
        [each for each in chosen if each not in found], given.jobs, given.limit
    ):
        found[mistake] = result
        with given.out.open("a") as file:
            print(json.dumps({"of": of, "mistake": mistake, **result._asdict()}), file=file)
        print(
            f"{result.state:9}  {mistake.file}: {mistake.wrong}\n           {result.by}", flush=True
        )
    bad = [each for each in chosen if found[each].state not in ("noticed", "passes")]
    for each in bad:
        print(f"{found[each].state:9}  {each.file}: {each.wrong}")
    print(
        f"{len(chosen) - len(bad)} of {len(chosen)} are as they should be; all results: {given.out}"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
