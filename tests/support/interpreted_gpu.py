"""Run by test_cuda_simulator in a separate process: the simulated device and the CPU, both interpreted."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.errors import ParameterError, UnsupportedError
from decoupled.simulation.gpu import memory as sizes
from support.custom_game import ScriptedGreedy, ScriptedGrudge

worlds = dc.environments
POLICIES: tuple[dc.Policy, ...] = (
    dc.FTPL(),
    dc.FTPL(alpha=2.5, ranking="sorting"),
    dc.CentredFTPL(),
    dc.FTPL(ranking="strata"),
    dc.Ladder(),
    dc.TsallisINF(),
    dc.Exp3(),
    dc.FollowTheLeader(),
    dc.UCB1(),
    dc.TopTwo(),
    dc.Forgetting(dc.FTPL(), period=7),
    ScriptedGreedy(),
)
ENVIRONMENTS: tuple[dc.environments.Environment, ...] = (
    worlds.Alternating(arms=3, gap=0.25),
    worlds.LossTable([[0.2, 0.7, 0.4], [0.9, 0.1, 0.4]], noise="beta"),
    worlds.PunishLast(arms=3, window=2),
    worlds.AdaptiveAlternating(arms=3, gap=0.25),
    ScriptedGrudge(arms=3),
)
HORIZON, RUNS = 12, 5
LATE_POLICIES = (dc.FTPL(), dc.Ladder(), POLICIES[3], dc.UCB1(), ScriptedGreedy())
LATE = (
    dc.Traffic(delay=3),
    dc.Traffic(delay=("geometric", 2.0), missing=0.2, explore_share=0.8),
    dc.Traffic(delay=("uniform", 1, 4)),
)


def run(policy: dc.Policy | tuple[dc.Policy, ...], environment: Any, **how: Any) -> Any:
    return dc.simulate(policy, environment, HORIZON, RUNS, seed=4, checkpoints=3, **how).data


def differing(mine: Any, theirs: Any) -> list[str]:
    return [name for name in ("regret", "plays") if not np.array_equal(mine[name], theirs[name])]


def is_played(policy: dc.Policy, environment: dc.environments.Environment) -> bool:
    """Whether to play a game: two policies in all environments, and the others in a table and against an adversary."""
    return policy in (POLICIES[0], POLICIES[-1]) or environment in (
        ENVIRONMENTS[0],
        ENVIRONMENTS[2],
    )


def compare() -> list[str]:
    """Every policy and every environment: the CPU's own bits."""
    wrong = []
    for environment in ENVIRONMENTS:
        for policy in POLICIES:
            if not is_played(policy, environment):
                continue
            mine, theirs = (
                run(policy, environment, device="cuda"),
                run(policy, environment, workers=1),
            )
            wrong += [
                f"{policy.label}, {environment.label}: {name}" for name in differing(mine, theirs)
            ]
    return wrong


def compare_late() -> list[str]:
    """Late, lost and rare feedback: the CPU's own bits, whatever an earlier run of the thread left behind."""
    wrong = []
    for environment in (ENVIRONMENTS[0], ENVIRONMENTS[2], ENVIRONMENTS[4]):
        for policy in LATE_POLICIES:
            if not is_played(policy, environment):
                continue
            for how in LATE if policy == POLICIES[0] else LATE[:2]:
                traffic = replace(how, explore_share=1.0) if policy.coupled else how
                mine = run(policy, environment, device="cuda", traffic=traffic)
                theirs = run(policy, environment, workers=1, traffic=traffic)
                what = f"{policy.label}, {environment.label}, {traffic.label}"
                wrong += [f"{what}: {name}" for name in differing(mine, theirs)]
    return wrong


def regroup(environment: dc.environments.Environment) -> list[str]:
    """Blocks of any size, or a folder that lost some of them, change no bit."""
    pair = (dc.FTPL(), dc.Exp3())
    whole = run(pair, environment, device="cuda")
    wrong = [
        f"block={size}"
        for size in (1, 2, 4)
        if differing(run(pair, environment, device="cuda", block=size), whole)
    ]
    late = run(pair, environment, device="cuda", traffic=LATE[1])
    if differing(run(pair, environment, device="cuda", block=2, traffic=LATE[1]), late):
        wrong.append("block=2, late")
    folder = Path(tempfile.mkdtemp())
    run(pair, environment, device="cuda", block=2, out=folder)
    for path in sorted((folder / "blocks").iterdir())[::2]:
        path.unlink()
    if differing(run(pair, environment, device="cuda", block=2, out=folder), whole):
        wrong.append("resumed")
    shutil.rmtree(folder)
    # Memory for the results of two runs at a time: a block goes in pieces.
    before = sizes.most_runs
    for module in (sizes, sys.modules["decoupled.simulation.gpu.launch"]):
        vars(module)["most_runs"] = lambda requirements, device: 2
    if differing(run(pair, environment, device="cuda"), whole):
        wrong.append("pieces")
    for module in (sizes, sys.modules["decoupled.simulation.gpu.launch"]):
        vars(module)["most_runs"] = before
    # One device under two names: the blocks are divided between them.
    execution = vars(sys.modules["decoupled.simulation.gpu.launch"])
    devices = execution["devices"]
    execution["devices"] = lambda: (*devices(), *devices())
    if differing(run(pair, environment, device="cuda", block=1), whole):
        wrong.append("two devices")
    execution["devices"] = devices
    return wrong


def launch_as_on_a_device() -> list[str]:
    """Each kind of parameters is compiled once, with the CPU's rounding; what cannot be compiled raises an error with the reason."""
    kernels = sys.modules["decoupled.simulation.gpu.kernels"]
    rounding: list[bool] = []
    compiled_so: list[bool] = []

    class Dispatcher:
        def __getitem__(self, configuration: object) -> Any:
            return self.launched

        def launched(self, params: tuple[object, ...]) -> None:
            compiled_so.append(bool(rounding))
            if params == ("text",):
                raise TypeError("\nNo such type: text\nmore")

    @contextmanager
    def rounded() -> Iterator[None]:
        rounding.append(True)
        yield
        rounding.pop()

    device = SimpleNamespace(compute_capability=(9, 0))
    replaced = {
        "simulated": lambda: False,
        "toolkit": lambda: SimpleNamespace(get_current_device=lambda: device),
        "_rounding_as_on_the_cpu": rounded,
    }
    before = {name: vars(kernels)[name] for name in replaced}
    vars(kernels).update(replaced)
    refusal = ""
    try:
        kernel = kernels.Kernel(Dispatcher(), 0, "Scripted")
        for params in ((1.0,), (2.0,), (1,), (2,), (3.0,)):
            kernel.launch(1, 32, None, params)
        device.compute_capability = (8, 0)
        kernel.launch(1, 32, None, (1.0,))
        kernel.launch(1, 32, None, ("text",))
    except UnsupportedError as error:
        refusal = str(error)
    finally:
        vars(kernels).update(before)
    wrong = (
        []
        if compiled_so == [True, False, True, False, False, True, True]
        else [f"launches: {compiled_so}"]
    )
    told = (
        "Scripted" in refusal and "No such type: text" in refusal and "use device='cpu'" in refusal
    )
    return wrong if told else [*wrong, f"refusal: {refusal}"]


def run_short_of_memory() -> list[str]:
    """If a device runs out of memory, the error is one of ours."""

    def without_room(*arguments: object, **options: object) -> object:
        raise RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    execution = vars(sys.modules["decoupled.simulation.gpu.launch"])
    before, execution["run_block_on"] = execution["run_block_on"], without_room
    try:
        run(dc.Exp3(), ENVIRONMENTS[0], device="cuda")
    except UnsupportedError as error:
        return [] if "use device='cpu'" in str(error) else [str(error)]
    finally:
        execution["run_block_on"] = before
    return ["out of memory"]


def go_outside() -> list[str]:
    """An adversary that leaves the unit interval is detected."""
    try:
        run(dc.Exp3(), ScriptedGrudge(arms=3, price=-1.0), device="cuda")
    except ParameterError:
        return []
    return ["losses outside the unit interval"]


if __name__ == "__main__":
    sizes.resident_threads = lambda shape: (
        2
    )  # so that a thread plays several runs, one after another
    sample = run((dc.FTPL(), dc.Exp3()), ENVIRONMENTS[0], device="cuda")
    print(
        json.dumps(
            {
                "wrong": compare()
                + compare_late()
                + regroup(ENVIRONMENTS[0])
                + regroup(ENVIRONMENTS[2])
                + go_outside()
                + run_short_of_memory()
                + launch_as_on_a_device(),
                "sample": sample["regret"].values.tolist(),
            }
        )
    )
