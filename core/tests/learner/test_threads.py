"""One learner, many threads: calls run one after another, and none is interrupted."""

import json
import math
import queue
import random
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import decoupled as dc
from decoupled.extend import diagnostics
from support.saved import content_of

pytestmark = pytest.mark.slow

# The lock is the learner's, so a few policies do: sums, means, and the standard game.
POLICIES = [dc.FTPL(), dc.FollowTheLeader(), dc.CoupledFTPL(resampling="conditional")]
THREADS = 8
ROUNDS = 250
ARMS = 6
PATIENCE = 120.0  # seconds; reached only by a deadlock

every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)

# A decision, the arms available to it, and its loss.
Settled = tuple[dc.Decision, tuple[int, ...], float]


@pytest.fixture(autouse=True)
def _impatient_interpreter() -> Iterator[None]:
    """Threads switch every few microseconds.

    So a step without the lock is soon interrupted.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], object], threads: int = THREADS) -> None:
    """Run `work(number)` in each thread; re-raise its exceptions, and fail on a deadlock."""
    failures: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
    together = threading.Barrier(threads)

    def guarded(number: int) -> None:
        try:
            together.wait(PATIENCE)
            work(number)
        except BaseException as failure:
            failures.put(failure)

    # Daemons, so that a deadlock fails this test and does not hang the whole run.
    workers = [
        threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    assert not any(worker.is_alive() for worker in workers), "deadlock"
    if not failures.empty():
        raise failures.get()


def decide_and_observe(
    learner: dc.Learner, number: int, settled: list[Settled]
) -> list[dc.Decision]:
    """One thread's calls: every kind of decision, and feedback late and out of order.

    Return the rest.
    """
    chance = random.Random(number)
    waiting: list[tuple[dc.Decision, tuple[int, ...]]] = []
    for _ in range(ROUNDS):
        some = tuple(sorted(chance.sample(range(ARMS), chance.randint(1, ARMS))))
        every = tuple(range(ARMS))
        waiting += [(learner.decide(), every), (learner.decide(available=some), some)]
        waiting += [(each, every) for each in learner.decide(count=2)]
        if learner.policy.coupled:
            waiting.append((learner.decide(), every))
        else:
            waiting.append((learner.explore(), every))
            assert learner.exploit(available=some).exploit in some
        while len(waiting) > 10:
            decision, reachable = waiting.pop(chance.randrange(len(waiting)))
            loss = chance.random()
            learner.observe(decision.id if chance.random() < 0.5 else decision, loss=loss)
            settled.append((decision, reachable, loss))
    return [decision for decision, _ in waiting]


def expected_estimates(policy: dc.Policy, settled: list[Settled]) -> list[float]:
    """The same observations, applied by one thread in some order."""
    if isinstance(policy, dc.FollowTheLeader):
        losses = [
            [loss for decision, _, loss in settled if decision.explore == arm]
            for arm in range(ARMS)
        ]
        return [math.fsum(each) / len(each) for each in losses]
    sums = [0.0] * ARMS
    for decision, reachable, loss in settled:
        for arm in range(ARMS):
            if arm == decision.explore:
                sums[arm] += decision.weight * loss
            elif arm not in reachable:
                sums[arm] += loss
    return sums


@every_policy
def test_no_observation_is_lost_or_counted_twice(policy: dc.Policy) -> None:
    learner = policy.start(ARMS, seed=0)
    settled: list[list[Settled]] = [[] for _ in range(THREADS)]
    left: list[list[dc.Decision]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        left[number] = decide_and_observe(learner, number, settled[number])

    in_threads(work)
    applied = [each for part in settled for each in part]
    pending = [each for part in left for each in part]
    assert learner.round == 1 + len(applied)
    assert set(learner.pending) == set(pending)
    assert len(learner.pending) == len(pending)
    ids = [each.id for each in pending] + [decision.id for decision, _, _ in applied]
    assert len(set(ids)) == len(ids) == THREADS * ROUNDS * 5
    assert learner.estimates() == pytest.approx(expected_estimates(policy, applied), rel=1e-9)
    assert learner.pending.forgotten == 0
    # Loading recomputes ranks and weights: after a torn update they would differ from the
    # learner's.
    loaded = dc.Learner.from_json(learner.to_json())
    assert np.array_equal(loaded.exploration_probabilities(), learner.exploration_probabilities())
    assert loaded.decide(count=50) == learner.decide(count=50)


@every_policy
def test_a_state_saved_amid_traffic_is_whole(policy: dc.Policy) -> None:
    learner = policy.start(ARMS, seed=0)

    def work(number: int) -> None:
        if number > 1:
            decide_and_observe(learner, number, [])
            return
        for _ in range(60):
            text = learner.to_json()
            copy = dc.Learner.from_json(text)
            # Between any two calls, each decision made is either pending or applied.
            assert json.loads(text)["content"]["made"] == copy.round - 1 + len(copy.pending)
            assert copy.exploration_probabilities().sum() == pytest.approx(1.0, rel=1e-9)
            assert learner.fork(number).round >= copy.round

    in_threads(work)


def test_only_one_of_many_feedbacks_for_a_decision_is_taken() -> None:
    learner = dc.FTPL().start(ARMS, seed=0)
    decisions = learner.decide(count=300)
    refusals = [0] * THREADS

    def work(number: int) -> None:
        for decision in decisions:
            try:
                learner.observe(decision, loss=0.5)
            except dc.FeedbackError:
                refusals[number] += 1

    in_threads(work)
    assert sum(refusals) == 300 * (THREADS - 1)
    assert learner.round == 301
    assert learner.pending == ()


def test_the_limit_on_pending_decisions_holds() -> None:
    learner = dc.FTPL().start(ARMS, seed=0, max_pending=20)
    forgotten = [0] * THREADS

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            decision = learner.decide()
            assert len(learner.pending) <= 20
            if number % 2:
                try:
                    learner.forget(decision)
                except dc.FeedbackError:  # other threads have dropped it
                    continue
                forgotten[number] += 1

    in_threads(work)
    assert len(learner.pending) + learner.pending.forgotten == THREADS * ROUNDS
    assert sum(forgotten) <= learner.pending.forgotten


@every_policy
@pytest.mark.filterwarnings("ignore::decoupled.UnseenArmWarning")
def test_compiled_updates_do_not_overlap(policy: dc.Policy) -> None:
    """With thousands of arms an update takes long.

    Compiled code releases the interpreter lock.
    """
    arms, records = 4000, 20
    learner = policy.start(arms, seed=0)

    def work(number: int) -> None:
        for _ in range(10):
            assert learner.replay([(number, 0.5, 1.0)] * records) == records
            assert learner.exploration_probabilities().sum() == pytest.approx(1.0, rel=1e-9)
            assert diagnostics(learner)["arms"] == arms
            assert repr(learner).startswith("<Learner ")

    in_threads(work)
    assert learner.round == 1 + THREADS * 10 * records
    mean = isinstance(policy, dc.FollowTheLeader)
    assert learner.estimates()[:THREADS].tolist() == [1.0 if mean else 2.0 * 10 * records] * THREADS


def test_what_gives_names_may_use_the_learner() -> None:
    """No user code runs while the lock is held; otherwise this would deadlock."""
    learner = dc.FTPL().start(["a", "b", "c"], seed=0)

    def work(_: int) -> None:
        learner.add_arms(f"x{learner.round}" for _ in range(1))
        learner.decide(available=(arm for arm in learner.arms if learner.round))
        known = (arm for arm in learner.arms if learner.estimates() is not None)
        learner.exploration_probabilities(available=known)
        learner.replay((arm, 0.5, learner.estimates()[0]) for arm in learner.arms)
        learner.retire_arms(arm for arm in ["x1"] if learner.estimates() is not None)

    in_threads(work, threads=1)


def test_threads_that_decide_learn_add_and_retire() -> None:
    learner = dc.Ladder().start(["a", "b", "c"], seed=0)

    def work(number: int) -> None:
        for turn in range(300):
            if number % 2:
                learner.add_arms([f"{number}-{turn}"])
                learner.retire_arms([f"{number}-{turn}"])
            else:
                learner.observe(learner.decide(), loss=0.5)

    in_threads(work, threads=4)
    assert learner.arms == ("a", "b", "c")
    assert learner.round == 1 + 2 * 300
    born, _ = content_of(learner)["serials"]
    assert born == 3 + 2 * 300
    assert learner.pending == ()
