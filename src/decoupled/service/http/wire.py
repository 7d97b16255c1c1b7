"""Decisions as JSON text, written by hand: they are most of what the service says.

The tests hold them to `decision_out`, which gives the same content as a dictionary.
"""

import json
from functools import lru_cache

from ...decision import Arm
from ..experiment.live import Running
from ..experiment.records import moment
from ..experiment.rows import Decided, Settled

_PENDING = '"pending","loss":null,"settled_at":null'
_UNOBSERVED = '"unobserved","loss":null,"settled_at":null'
_spell = json.JSONEncoder(ensure_ascii=False).encode


def decision_text(running: Running, row: Decided, settled: Settled | None) -> str:
    """A decision as JSON, from its experiment, its row, and the row that settled it if there is one."""
    (
        seq, mode, _, exploited, explored, propensity, weight, _, version, _, made_at, expires_at, drew, guard, limited_by,
    ) = row  # fmt: skip
    names, id = running.names, f"{running.tag}-{seq}"  # noqa: A001
    exploit = "null" if exploited is None else _spelled(names[exploited])
    drawn = exploit if drew is None else _spelled(names[drew])
    if explored is None:
        explore, to, end = "null", "null", _UNOBSERVED
    else:
        explore, end = _spelled(names[explored]), _PENDING
        to = f'{{"loss_of":{explore},"to":"/v1/decisions/{id}/feedback"}}'
    if settled is not None:
        status = "applied" if settled.kind == "observed" else "expired"
        loss = "null" if settled.loss is None else repr(settled.loss)
        end = f'"{status}","loss":{loss},"settled_at":"{moment(settled.at)}"'
    return (
        f'{{"id":"{id}","experiment":{_spelled(running.name)},"mode":"{mode}","exploit":{exploit},'
        f'"explore":{explore},"send_feedback":{to},'
        f'"propensity":{"null" if propensity is None else repr(propensity)},'
        f'"weight":{"null" if weight is None else repr(weight)},"policy":"{running.policy}",'
        f'"state_version":{version},"made_at":"{moment(made_at)}",'
        f'"expires_at":{"null" if expires_at is None else _quoted(moment(expires_at))},"status":{end},'
        f'"drawn":{drawn},"guard":{"null" if guard is None else _quoted(guard)},'
        f'"limited_by":{"null" if limited_by is None else _quoted(limited_by)}}}'
    )


@lru_cache(65_536, typed=True)  # the number 1 and the truth value are equal
def _spelled(name: Arm) -> str:
    return _spell(name)


def _quoted(plain: str | None) -> str:
    return f'"{plain}"'
