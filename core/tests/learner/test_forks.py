"""A learner in forked processes: none waits for ever, and no two draw the same arms under the same ids."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks"),
    pytest.mark.slow,  # starts processes, in a fixture of the module
]

SCRIPT = """
import json, os, sys, threading, warnings
import decoupled as dc

warnings.simplefilter("ignore")    # later versions of Python warn of forks with threads
arms = [str(n) for n in range(50)]
plain, seeded, watched = (dc.FTPL().start(arms, seed=seed) for seed in (None, 7, None))
watched.watch()
meter, over = dc.Meter(dc.Budget(rate=(100, 60))), threading.Event()
inherited = seeded.decide()

def work():
    while not over.is_set():
        watched.observe(watched.decide(), 0.5)

def played(learner):
    decisions = [learner.decide() for _ in range(8)]
    learner.observe(decisions[0], 0.5)
    return [each.id for each in decisions], [each.explore for each in decisions]

def child():
    found = [played(each) for each in (plain, seeded, watched)]
    meter.decide(seeded)
    verdict = watched.inference.verdict()
    observed = watched.inference.sequences.observed + verdict.waiting
    return found, seeded.round, len(seeded.pending), observed == watched.round - 1

def run(act):
    ours, theirs = os.pipe()
    number = os.fork()
    if number == 0:
        os.write(theirs, json.dumps(act()).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        found = json.loads(answer.read())
    os.waitpid(number, 0)
    return found

thread = threading.Thread(target=work, daemon=True)
thread.start()
results = []
for _ in range(12):
    results.append(run(child))
over.set()
thread.join()
grandchild, child = run(lambda: [run(lambda: played(plain)), played(plain)])
refusals = []
for answer in results:
    for learner, (ids, _) in zip((plain, seeded, watched), answer[0]):
        try:
            learner.observe(ids[1], 0.5)
        except dc.FeedbackError as error:
            refusals.append(str(error))
mine = [played(each) for each in (plain, seeded, watched)]
print(json.dumps({"children": results, "mine": mine, "refusals": refusals, "round": seeded.round,
                  "family": [grandchild, child]}))
"""


@pytest.fixture(scope="module")
def runs() -> list[dict[str, Any]]:
    """What two runs of the script found."""
    done = [
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
        for _ in range(2)
    ]
    assert [each.stderr for each in done] == ["", ""]
    return [json.loads(each.stdout) for each in done]


def test_forked_processes_share_what_was_known_and_no_ids_or_draws(runs: list[dict[str, Any]]) -> None:
    found = runs[0]
    for place in range(3):
        played = [answer[0][place] for answer in found["children"]] + [found["mine"][place]]
        ids = [each for one in played for each in one[0]]
        assert len(set(ids)) == len(ids) == 13 * 8
        assert len({tuple(each[1]) for each in played}) == 13
    # It is the first child of its parent, as that one is of its own.
    grandchild, child = runs[0]["family"]
    assert not set(grandchild[0]) & set(child[0])
    assert grandchild[1] != child[1]
    assert len(runs[0]["refusals"]) == 12 * 3
    assert all("was never made by this learner" in each for each in runs[0]["refusals"])
    assert runs[0]["round"] == 2, "only what this process observed counts"
    for answer in runs[0]["children"]:
        assert answer[1:] == [2, 1 + 7 + 1, True], "one inherited, seven of its own, the meter's"
    one, two = (each["children"] for each in runs)
    assert [answer[0][1][1] for answer in one] == [answer[0][1][1] for answer in two]
    assert [answer[0][0] for answer in one] != [answer[0][0] for answer in two]
