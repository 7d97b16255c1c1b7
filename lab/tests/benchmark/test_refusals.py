"""A broken entry is refused with the reason, and spoils nothing."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.simulation.cpu import run_block
from decoupled_lab.benchmark import processes
from decoupled_lab.benchmark.loading import Source
from decoupled_lab.benchmark.processes import Pool, Process
from decoupled_lab.benchmark.run import run
from decoupled_lab.benchmark.suite import SUITE, Size
from decoupled_lab.benchmark.task import check_entry
from decoupled_lab.benchmark.worker import REFUSED, Worker, guarded
from support.entries import BROKEN_LINE, CLASS, HEAD, SOFT, with_line

SIZE = Size("tiny", 2, 1_000)


@pytest.fixture(autouse=True)
def forgotten(forget_policies: None) -> None:
    """Policies that a file defines here are not known to other tests."""


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def first_command(file: Path, limit: float) -> dict[str, Any]:
    sha256 = Source(str(file)).sha256
    size = list(SIZE)
    return {
        "given": str(file),
        "name": None,
        "sha256": sha256,
        "size": size,
        "data": None,
        "limit": limit,
    }


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (HEAD, dc.ParameterError, r"policy = 'mine\.py': defines no policy, .*; see docs/custom-policy\.md"),
        (
            SOFT + CLASS.replace("Soft", "Hard"),
            dc.ParameterError,
            r"policy = 'mine\.py': defines 2 policies, Soft, Hard; choose one: --policy Soft",
        ),
        (SOFT + "def f(:\n", dc.ContractError, rf"line {SOFT.count(chr(10)) + 1} is not Python \(invalid syntax\); correct it"),
        ("import no_such_module\n" + SOFT, dc.ContractError, "imports no_such_module, which is not installed"),
        (SOFT.replace("@dataclass(frozen=True)\n", ""), dc.ContractError, "is not a dataclass"),
        (
            SOFT.replace("rate: float = 0.1", "rate: float"),
            dc.ParameterError,
            r"other parameters than Soft: rate; give every parameter a default, or its value: --policy",
        ),
    ],
)  # fmt: skip
def test_files_without_one_policy(
    text: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        Source(str(written(tmp_path, text))).load()


def test_which_policy_of_a_file(tmp_path: Path) -> None:
    file = str(
        written(tmp_path, SOFT + CLASS.replace("Soft", "Hard") + "\nlively = Hard(rate=3.0)\n")
    )
    loaded = {
        name: Source(file, name).load().label for name in ("Hard", "lively", "Soft(rate=0.7)")
    }
    assert loaded == {"Hard": "Hard", "lively": "Hard(rate=3)", "Soft(rate=0.7)": "Soft(rate=0.7)"}
    with pytest.raises(
        dc.ParameterError, match=r"--policy = 'Sort': is not in mine\.py; did you mean"
    ):
        Source(file, "Sort").load()
    assert (
        Source(str(written(tmp_path, SOFT + "\npolicy = Soft(2.0)\n"))).load().label
        == "Soft(rate=2)"
    )


def test_a_base_class_is_no_policy_of_its_own(tmp_path: Path) -> None:
    more = "\n@dataclass(frozen=True)\nclass Softer(Soft):\n    rate: float = 0.01\n"
    assert Source(str(written(tmp_path, SOFT + more))).load().label == "Softer"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Ladder", "is neither a Python file nor a call of a policy; for example"),
        ("Lader()", "calls Lader, which is no policy; did you mean 'Ladder'"),
        ("Ladder(nope=1)", "has other parameters than Ladder: rungs, .*; see decoupled policies"),
        ("Ladder(mean_rate=-1)", "mean_rate = -1: must be .*; the default is"),
        ("FTPL(c=open)", "has 'open' in it, which is no plain value"),
        ("FTPL(c=open('x'))", "calls open, which is no policy"),
        ("Ladder(**{'mean_rate': 0.3})", r"has .*mean_rate.* in it, which names no parameters"),
    ],
)
def test_calls_that_make_no_policy(call: str, message: str) -> None:
    with pytest.raises(dc.ParameterError, match=rf"^policy = .*{message}"):
        Source(call).load()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 / 0", rf"raised ZeroDivisionError: division by zero \(decide, line {BROKEN_LINE} of mine\.py: 1 / 0\); correct it"),
        ("sys.exit('enough')", rf"raised SystemExit: enough \(decide, line {BROKEN_LINE} of mine\.py"),
        ("return exploit * math.nan, explore", r"Soft\.decide: gave \[nan.*; divide them by their sum"),
        ("return known.arms, explore", r"Soft\.decide: gave arm 5 to exploit; arms are numbered 0 to 4"),
        ("return 'first'", r"Soft\.decide: returned 'first'; return two lists of probabilities"),
        ("return exploit[1:], explore", r"Soft\.decide: gave .* to exploit 5 arms; return two lists"),
        ("return np.random.dirichlet(explore), explore", r"plays another game .*; draw from known\.random\(\)"),
    ],
)  # fmt: skip
def test_policies_that_break_their_contract(line: str, message: str, tmp_path: Path) -> None:
    source = Source(str(written(tmp_path, with_line(line))))
    answer = guarded(source, lambda: check_entry(source.load()))
    assert REFUSED in answer
    assert re.search(message, answer[REFUSED]), answer


def test_a_file_that_changes_while_the_benchmark_runs(tmp_path: Path) -> None:
    before = Source(str(written(tmp_path, SOFT))).sha256
    source = Source(str(written(tmp_path, SOFT.replace("0.1", "0.2"))))
    with pytest.raises(
        dc.ContractError, match="was changed while the benchmark ran; run the same command"
    ):
        Worker(source, before, list(SIZE), None, 60.0)


def test_a_policy_that_only_a_learner_can_run() -> None:
    with pytest.raises(dc.UnsupportedError, match="runs in a learner only"):
        Worker(Source("TsallisINF(solver='scs')"), None, list(SIZE), None, 60.0).check()


def test_an_error_of_the_policy_itself_is_not_told_as_wrong_parameters(tmp_path: Path) -> None:
    file = written(tmp_path, SOFT + "\n    def __post_init__(self):\n        len(self.rate)\n")
    answer = guarded(source := Source(str(file)), source.load)
    assert re.search(
        r"raised TypeError: .*has no len.* \(__post_init__, line \d+ of mine", answer[REFUSED]
    )


def test_what_passes_from_a_run_to_another_is_noticed(tmp_path: Path) -> None:
    # The trial has fewer rounds, so it cannot notice this.
    line = "SEEN.append(known.round); exploit = np.roll(np.eye(known.arms)[0], len(SEEN) // 200)"
    text = with_line(line).replace("@dataclass", "SEEN = []\n\n\n@dataclass", 1)
    policy = Source(str(written(tmp_path, text))).load()
    [task] = [task for task in SUITE.tasks(Size("tiny", 2, 40)) if task.name == "alternating-8"]
    with pytest.raises(dc.ContractError, match=r"Soft: plays another game when it plays the"):
        task.play(policy)


def test_a_compiled_policy_that_gives_an_arm_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a policy writes beyond its row of the plays: one row has too many, or none has enough.
    def beyond(*arguments: Any, **options: Any) -> Any:
        done = run_block(*arguments, **options)
        done.plays[0, 0] -= 1
        return done

    task = SUITE.tasks(SIZE)[0]
    task.play(dc.FTPL())
    monkeypatch.setattr("decoupled_lab.benchmark.task.run_block", beyond)
    with pytest.raises(
        dc.ContractError, match="FTPL: gave an arm out of range; arms are numbered 0 to 4"
    ):
        task.play(dc.FTPL())


def test_a_process_that_keeps_the_pipe_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    born, ended = tmp_path / "born", tmp_path / "ended"
    child = (
        f"os.setsid(); open({str(born)!r}, 'w').write(str(os.getpid())); time.sleep(60); "
        f"open({str(ended)!r}, 'w'); os._exit(0)"
    )
    line = f"if os.fork() == 0: {child}\n        time.sleep(1e6)"
    monkeypatch.setattr("decoupled_lab.benchmark.processes.GRACE", 2.0)
    with (
        pytest.raises(dc.ContractError, match="took more than"),
        Pool(first_command(written(tmp_path, with_line(line)), 5.0), 1) as pool,
    ):
        list(pool.answers([({"task": None}, "in a short trial")]))
    assert not ended.exists(), "the command does not wait for it"
    os.kill(int(born.read_text()), signal.SIGKILL)


def test_a_policy_in_python_has_a_process_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Process] = []
    ended: list[Process] = []

    class Noted(Process):
        def __init__(self, first: dict[str, Any]) -> None:
            super().__init__(first)
            made.append(self)

        def end(self) -> None:
            super().end()
            ended.append(self)

    monkeypatch.setattr(processes, "Process", Noted)
    names = ("late-stochastic-5", "stochastic-easy-5")
    commands = [({"task": name, "references": False}, "") for name in names]
    with Pool(first_command(written(tmp_path, SOFT), 60.0), 1) as pool:
        for fresh, count in ((False, 1), (True, 3)):
            pool.fresh = fresh
            assert len(list(pool.answers(commands))) == 2
            assert len(made) == count
        assert ended == made[:-1]


@pytest.mark.parametrize(
    ("line", "limit", "message"),
    [
        (
            "time.sleep(1e6)",
            0.5,
            rf"took more than \d+ seconds \(decide, line {BROKEN_LINE} of mine\.py\); make it faster",
        ),
        ("os._exit(3)", 60.0, r"ended its process with the exit status 3; correct it"),
        (
            "ctypes.string_at(0)",
            60.0,
            rf"ended its process with .*decide, line {BROKEN_LINE} of mine\.py\); correct it",
        ),
    ],
)
def test_policies_that_break_their_process(
    line: str, limit: float, message: str, tmp_path: Path
) -> None:
    first = first_command(written(tmp_path, with_line(f"print('hello'); {line}")), limit)
    with (
        pytest.raises(dc.ContractError, match=rf"^mine\.py, in a short trial: {message}"),
        Pool(first, 1) as pool,
    ):
        list(pool.answers([({"task": None}, "in a short trial")]))


def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    first = first_command(written(tmp_path, with_line("time.sleep(1e6)")), 600.0)
    command = [sys.executable, "-P", "-m", "decoupled_lab.benchmark.worker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        print(json.dumps(first), file=worker.stdin, flush=True)
        assert json.loads(worker.stdout.readline()) == {"answer": None}
        print(json.dumps({"task": None}), file=worker.stdin, flush=True)  # in which it sleeps
        worker.stdin.close()  # as the system does when a process is killed
        assert worker.wait() == 0


def test_what_is_kept_of_a_policy_depends_on_its_parameters(tmp_path: Path) -> None:
    text = SOFT + "\n    @property\n    def label(self):\n        return 'Mine'\n"
    file = written(tmp_path, text)
    sources = [Source(str(file), f"Soft(rate={rate})") for rate in (0.1, 0.2)]
    checked = [Worker(each, each.sha256, list(SIZE), None, 60.0).check() for each in sources]
    assert checked[0]["name"] == checked[1]["name"] == "Mine()"
    assert [each["parameters"]["rate"] for each in checked] == [0.1, 0.2]


def test_files_and_objects_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(dc.ParameterError, match=r"policy = '.*gone\.py': is no file"):
        run(tmp_path / "gone.py", SIZE, tmp_path)
    mine = Source(str(written(tmp_path, SOFT))).load()
    with pytest.raises(
        dc.ParameterError, match=r"policy = .*: is not of this package, and its file"
    ):
        run(mine, SIZE, tmp_path)
    with pytest.raises(
        dc.ParameterError, match=r"--policy = 'Soft': chooses among the policies of a file"
    ):
        Source("Ladder()", "Soft").load()
