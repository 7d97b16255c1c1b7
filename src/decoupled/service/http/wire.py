"""Decisions as JSON text, written by hand: they are most of what the service says.

The tests hold them to `decision_out`, which gives the same content as a dictionary.
"""

import json
from functools import lru_cache

from ...decision import Arm
from ..experiment.live import Running
from ..experiment.records import moment
from ..experiment.rows import Decided, Settled

_spell = json.JSONEncoder(ensure_ascii=False).encode


def decision_text(running: Running, row: Decided, settled: Settled | None) -> str:
    """A decision as JSON, from its experiment, its row, and the row that settled it if there is one."""
    names, id = running.names, f"{running.tag}-{row.seq}"  # noqa: A001
    exploit = "null" if row.exploit is None else _spelled(names[row.exploit])
    drawn = exploit if row.drawn is None else _spelled(names[row.drawn])
    status, loss, settled_at = "pending", "null", "null"
    if row.explore is None:
        explore, to, status = "null", "null", "unobserved"
    else:
        explore = _spelled(names[row.explore])
        to = f'{{"loss_of":{explore},"to":"/v1/decisions/{id}/feedback"}}'
    if settled is not None:
        status = "applied" if settled.kind == "observed" else "expired"
        loss, settled_at = _number(settled.loss), f'"{moment(settled.at)}"'
    expires_at = "null" if row.expires_at is None else f'"{moment(row.expires_at)}"'
    return (
        f'{{"id":"{id}","experiment":{_spelled(running.name)},"mode":"{row.mode}","exploit":{exploit},'
        f'"explore":{explore},"send_feedback":{to},"propensity":{_number(row.propensity)},'
        f'"weight":{_number(row.weight)},"policy":"{running.policy}","state_version":{row.version},'
        f'"made_at":"{moment(row.made_at)}","expires_at":{expires_at},"status":"{status}","loss":{loss},'
        f'"settled_at":{settled_at},"drawn":{drawn},"guard":{_word(row.guard)},'
        f'"limited_by":{_word(row.limited_by)}}}'
    )


@lru_cache(65_536, typed=True)  # the number 1 and the truth value are equal
def _spelled(name: Arm) -> str:
    return _spell(name)


def _number(value: float | None) -> str:
    return "null" if value is None else float.__repr__(value)


def _word(value: str | None) -> str:
    return "null" if value is None else f'"{value}"'
