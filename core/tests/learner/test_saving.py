"""Saved states continue bit for bit, and only intact ones load.

Forked processes wait for nobody and share no draws.
"""

import copy
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.base.files import ABANDONED, remove_abandoned, write_atomically
from decoupled.base.packed import seal
from support.plain_python import ran
from support.policies import forms


def drive(learner: dc.Learner, rounds: int, seed: int) -> list[object]:
    """Every kind of call in a seeded order, and all results."""
    script = random.Random(seed)
    answers: list[object] = []
    for _ in range(rounds):
        available = script.sample(learner.arms, script.randint(1, len(learner.arms)))
        decision = learner.decide()
        answers.append((decision, decision.drawn, decision.guard))
        if not learner.policy.coupled:
            answers.append(learner.exploit())
        if script.random() < 0.3:
            answers.append(learner.decide(available=available))
        if script.random() < 0.2 and not learner.policy.coupled:
            answers.append(learner.explore(available=available))
        if script.random() < 0.1:
            learner.replay([(available[0], script.uniform(0.05, 1), script.random())])
        for decision in script.sample(learner.pending, max(0, len(learner.pending) - 5)):
            learner.observe(decision, loss=script.random())
    return answers


def used(policy: dc.Policy, arms: int = 5, rounds: int = 100) -> dc.Learner:
    """A learner after a hundred rounds, with decisions pending, some of them restricted."""
    learner = policy.start(arms, seed=21, max_pending=50)
    drive(learner, rounds, seed=1)
    learner.decide(available=range(arms - 1))
    learner.forget(learner.decide())
    return learner


def guarded(learner: dc.Learner) -> None:
    learner.guardrails = dc.Guardrails(floors={0: 0.2, 3: 0.1}, holdout=0.15, control=2)


STAYING = dc.Guardrails(
    cheapest_within=0.9,
    prices=dict.fromkeys(range(5), 1.0),
    risk=0.9,
    drift=False,
    switch_margin=0.01,
)


def regrouped(learner: dc.Learner) -> None:
    learner.retire_arms([1])
    learner.add_arms(["new", 1])


FEATURES: list[Callable[[dc.Learner], None]] = [
    dc.Learner.watch,
    guarded,
    lambda learner: setattr(learner, "guardrails", dc.Guardrails(incumbent=1)),
    lambda learner: setattr(learner, "guardrails", STAYING),
    regrouped,
]


def small(names: Sequence[str] = "ab") -> dc.Learner:
    learner = dc.FTPL().start(list(names), seed=3)
    # Estimates with exponents, because these can be written in more than one way.
    learner.replay([(names[0], 1.0, 1e-7), (names[1], 2.0**-60, 1.0)])
    learner.decide(available=[names[1]])
    return learner


CARRIERS: dict[str, Callable[[dc.Learner], dc.Learner]] = {
    "json": lambda learner: dc.Learner.from_json(learner.to_json()),
    "bytes": lambda learner: dc.Learner.from_json(learner.to_json().encode()),
    "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize(
    ("policy", "arms", "feature"),
    [
        *((policy, 5, None) for policy in forms()),
        *((dc.FTPL(), arms, None) for arms in (2, 17)),
        *((policy, 5, each) for policy in (dc.FTPL(), dc.Ladder()) for each in FEATURES),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_a_loaded_learner_continues_bit_for_bit(
    policy: dc.Policy, arms: int, feature: Callable[[dc.Learner], None] | None
) -> None:
    learner = used(policy, arms)
    if feature is not None:
        feature(learner)
        drive(learner, 30, seed=3)
    before = learner.to_json()
    all_loaded = {name: load(learner) for name, load in CARRIERS.items()}
    assert learner.to_json() == before
    answers, after = drive(learner, 40, seed=2), learner.to_json()
    for name, loaded in all_loaded.items():
        assert type(loaded) is type(learner), name
        assert loaded.to_json() == before, name
        assert drive(loaded, 40, seed=2) == answers, name
        assert loaded.to_json() == after, name


def test_a_saved_learner_continues_in_another_process(tmp_path: Path) -> None:
    """A fresh process has imported nothing: a pickle itself must import the policies."""
    learner = used(dc.TsallisINF())
    learner.save(tmp_path / "learner.json")
    (tmp_path / "learner.pickle").write_bytes(pickle.dumps(learner))
    after = repr(learner.decide(count=20))
    code = "import sys, decoupled as dc; print(dc.Learner.load(sys.argv[1]).decide(count=20))"
    assert ran("-c", code, tmp_path / "learner.json").strip() == after
    code = "import sys, pickle; print(pickle.load(open(sys.argv[1], 'rb')).decide(count=20))"
    assert ran("-c", code, tmp_path / "learner.pickle").strip() == after


def test_save_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "learner.json"
    path.write_text("something else, and longer than nothing")
    learner = small()
    learner.save(str(path))
    assert path.read_text() == learner.to_json()
    learner.decide()
    learner.save(path)
    assert dc.Learner.load(path).to_json() == learner.to_json()
    assert os.listdir(tmp_path) == ["learner.json"]
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        dc.Learner.load(tmp_path / "nowhere.json")
    with pytest.raises(FileNotFoundError):
        small().save(tmp_path / "no folder" / "learner.json")


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(
    "failure", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
@pytest.mark.parametrize("existed", [True, False])
def test_a_failed_save_leaves_the_old_file_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    failure: BaseException,
    existed: bool,
) -> None:
    path = tmp_path / "learner.json"
    learner = small()
    if existed:
        learner.save(path)
    old = learner.to_json()
    learner.decide()

    def fail(*_: object) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(type(failure)):
            learner.save(path)
    assert os.listdir(tmp_path) == (["learner.json"] if existed else [])
    if existed:
        assert dc.Learner.load(path).to_json() == old


def test_the_file_is_whole_on_disk_before_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, path, steps = small(), tmp_path / "learner.json", []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(handle: int) -> None:
        assert os.fstat(handle).st_size == len(learner.to_json())
        steps.append("fsync")
        fsync(handle)

    def watched_replace(source: str, target: Path) -> None:
        assert Path(source).parent == Path(target).parent  # a rename is atomic only within a disk
        steps.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    learner.save(path)
    assert steps == ["fsync", "replace"]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything within a value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in items:
        yield (*path, key)
        yield from places_in(each, (*path, key))


BAD: list[Any] = [None, -1, 0.5, 1e308, 10**30, "x", True, [], {}, [[]], [-1], "remove"]


@pytest.mark.parametrize("policy", [dc.FTPL(), dc.Ladder(), dc.TopTwo()], ids=repr)
def test_a_state_that_nobody_wrote_is_refused_or_works(policy: dc.Policy) -> None:
    """With a good checksum, as from a program that edits states.

    Never another error, and no round before the first.
    """
    learner = policy.start(["a", "b", "c", "d"], seed=7)
    learner.watch()
    priced: Any = {
        "cheapest_within": 0.9,
        "risk": 0.9,
        "drift": False,
        "prices": dict.fromkeys("abcd", 1.0),
    }
    learner.guardrails = dc.Guardrails(floors={"b": 0.1}, down=["d"], switch_margin=0.1, **priced)
    for loss in (0.25, 0.75):
        learner.observe(learner.decide(), loss)
    learner.guardrails = learner.guardrails.updated(incumbent="a")
    learner.decide(available=["a", "b"])
    learner.retire_arms(["c"])
    learner.decide()
    good = json.loads(learner.to_json())["content"]
    paths = list(places_in(good))
    chance = random.Random(1)
    chosen = [
        (path, bad) for path in paths for bad in BAD if len(path) == 1 or chance.random() < 0.25
    ]
    refused = 0
    for path, bad in chosen:
        content = json.loads(json.dumps(good))
        home = content
        for key in path[:-1]:
            home = home[key]
        if bad == "remove":
            del home[path[-1]]
        else:
            home[path[-1]] = bad
        try:
            changed = dc.Learner.from_json(seal("decoupled-learner", 1, content))
        except dc.StateError:
            refused += 1
            continue
        assert changed.round >= 1, path
        changed.decide(key="k")
        for decision in changed.pending:
            changed.observe(decision, 0.5)
        changed.to_json()
    assert refused > len(chosen) / 2


def refused(text: Any, message: str = "^state: .+; .+") -> None:
    with pytest.raises(dc.StateError, match=message):
        dc.Learner.from_json(text)


def test_another_format_or_version_and_every_truncation_are_refused() -> None:
    text = small().to_json()
    refused(text.replace("decoupled-learner", "decoupled-teacher"), "its format is")
    for version in ("0", "2", "true", '"1"', "null"):
        refused(text.replace('"version":1', f'"version":{version}'), "version is .* load it with")
    for end in range(len(text)):
        refused(text[:end])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[]",
        "null",
        "1",
        '"state"',
        b"\xff\xfe\x00{}",
        b"",
        "[" * 100_000,
        None,
        {},
        7,
    ],
    ids=lambda text: repr(text)[:12],
)
def test_what_is_no_state_is_refused(text: Any) -> None:
    refused(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused(constant: str) -> None:
    learner = dc.Exp3().start(arms=2, seed=0)
    learner.replay([(0, 1.0, 0.5)], unrandomised=True)
    text = learner.to_json()
    assert "[0.5,0.0]" in text
    refused(text.replace("[0.5,0.0]", f"[{constant},0.0]"))


@pytest.mark.parametrize("names", [["a", "b"], ["é", "東"]])
@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_any_flipped_bit_anywhere_is_noticed(mask: int, names: list[str]) -> None:
    """0x20 changes the case of a letter: "1E-07" and "1e-07" are the same number, but only one of
    them was written.
    """
    text = small(names).to_json().encode()
    for place in range(len(text)):
        refused(text[:place] + bytes([text[place] ^ mask]) + text[place + 1 :])


# Top two and UCB1 explore deterministically from what they have learned.
@pytest.mark.parametrize(
    "policy", [p for p in forms() if not isinstance(p, dc.TopTwo | dc.UCB1)], ids=repr
)
def test_a_fork_goes_its_own_way(policy: dc.Policy) -> None:
    learner = used(policy, arms=17)
    one, two = learner.fork(seed=1), learner.fork(seed=2)
    plays = {tuple(each.explore for each in who.decide(count=40)) for who in (learner, one, two)}
    assert len(plays) == 3
    pending = learner.pending[0]
    one.observe(pending, loss=1.0)
    assert pending in two.pending
    assert pending in learner.pending
    assert one.round == learner.round + 1


KILLED = """
import os, signal, sys
import decoupled as dc
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
dc.FTPL().start(["a", "b"], seed=7).save(sys.argv[1])
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def age(path: Path, seconds: float = 2.0 * ABANDONED) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_save_removes_what_a_killed_save_left(tmp_path: Path) -> None:
    path = tmp_path / "learner.json"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)]).returncode == -signal.SIGKILL
    [left] = names(tmp_path)
    learner = dc.FTPL().start(["a", "b"], seed=7)
    learner.save(path)
    assert names(tmp_path) == [left, "learner.json"], "it may be of a process that is still writing"
    age(tmp_path / left)
    learner.save(path)
    assert names(tmp_path) == ["learner.json"]


def test_only_unfinished_files_are_removed(tmp_path: Path) -> None:
    ours = ".learner.json.0123456789abcdef"
    others = [f"{name}.json.0123456789abcdef" for name in (".other", "learner")]
    others += [".learner.json.swp", ".learner.json"]
    for name in (ours, *others):
        (tmp_path / name).write_text("")
        age(tmp_path / name)
    write_atomically(tmp_path / "learner.json", "{}", tidy=False)
    assert ours in names(tmp_path)
    write_atomically(tmp_path / "learner.json", "{}")
    assert names(tmp_path) == sorted([*others, "learner.json"])
    remove_abandoned(tmp_path)
    assert ".other.json.0123456789abcdef" not in names(tmp_path)
    assert len(names(tmp_path)) == len(others)
    remove_abandoned(tmp_path / "nowhere")


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.slow  # starts processes, in a fixture of the module
def test_forked_processes_share_what_was_known_and_no_ids_or_draws(
    runs: list[dict[str, Any]],
) -> None:
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
