"""Route: a simulation to watch, for visitors who have no data yet."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from ...api.simulator import MOST_ARMS, MOST_ROUNDS, MOST_RUNS, MOST_WORK, Question, WorldName, lines
from ...errors import TooMany
from ..admission.auth import Admission
from ..framework import Reader, StrictRoute
from ..openapi import refusals

AT_ONCE = 2  # simulations, which must not slow down real decisions
WORK_OF_A_REQUEST = 1_000  # rounds x arms that cost about as much as another request
PULSE = 2.0  # seconds
NDJSON = "application/x-ndjson"
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line of JSON that describes the simulation, then one for each finished step: `round`, and "
        "for each policy the mean `regret` so far with the `half_width` of its 95% interval at this moment, and the "
        "share of the step's rounds in which each arm was exploited and explored. Empty lines mean nothing.",
        "content": {NDJSON: {"schema": {"type": "string"}}},
    }
}


def simulator_routes(admission: Admission) -> APIRouter:
    """Watch policies learn."""
    router = APIRouter(prefix="/v1", tags=["simulator"], route_class=StrictRoute)
    turns = asyncio.Semaphore(AT_ONCE)

    @router.get("/simulator", response_class=Response, responses={**_STREAM, **refusals()})
    async def simulate(
        access: Reader,
        environment: WorldName = "alternating",
        arms: Annotated[int, Query(ge=2, le=MOST_ARMS)] = 8,
        gap: Annotated[float, Query(ge=0.01, le=0.5, allow_inf_nan=False)] = 0.125,
        rounds: Annotated[int, Query(ge=100, le=MOST_ROUNDS)] = 2_000,
        runs: Annotated[
            int, Query(ge=1, le=MOST_RUNS, description=f"rounds x arms x runs: {MOST_WORK} at most.")
        ] = 4,
        seed: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    ) -> Response:
        """Run FTPL, Ladder, Tsallis-INF and EXP3 on a simulated world; sends a line of JSON after each step.

        No experiment is touched and nothing is stored. The numbers are those of `decoupled.simulate`.
        """
        question = Question(environment, arms, gap, rounds, runs, seed)
        admission.charge(access, question.work // WORK_OF_A_REQUEST)
        if turns.locked():
            raise TooMany(f"simulations: {AT_ONCE} are running, which is the limit; try again in 1 s", 1)
        return StreamingResponse(_stepwise(question), media_type=NDJSON)

    async def _stepwise(question: Question) -> AsyncIterator[str]:
        async with turns:  # requests that arrive at the same moment wait for each other
            loop, steps = asyncio.get_running_loop(), lines(question)
            while True:
                step = loop.run_in_executor(None, next, steps, None)
                # A policy that is new to this machine compiles for seconds; empty lines keep the connection open.
                while not (await asyncio.wait((step,), timeout=PULSE))[0]:
                    yield "\n"
                if (line := step.result()) is None:
                    return
                yield line

    return router
