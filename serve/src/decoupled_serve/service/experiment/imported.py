"""An experiment that starts from a saved learner: its first state is a snapshot before the first row of its log."""

import hashlib

from decoupled.client import Invalid
from decoupled.errors import DecoupledError, UnsupportedError
from decoupled.inference import Sequences
from decoupled.learner import Learner, Saved, described, without_pending

from .live import UNLIMITED, LiveExperiment
from .rows import ExperimentRow
from .snapshots import snapshot


def digest_of(text: str) -> str:
    """The digest of a saved learner, by which it is recognised."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def checked_learner(text: str) -> Saved:
    """What a saved learner says about itself; `Invalid` if it is damaged."""
    try:
        return described(text)
    except DecoupledError as error:
        raise _refused(error) from None


def adopted(text: str) -> str:
    """A saved learner as an experiment runs it. Its policy must be compiled."""
    try:
        return without_pending(text, UNLIMITED, renumbered=True)
    except DecoupledError as error:
        raise _refused(error) from None


def first_snapshot(row: ExperimentRow, learner: str) -> str:
    """The snapshot that an experiment starts from, given what `adopted` returned.

    Confidence sequences that the learner kept with the experiment's risk go on. Otherwise losses count from now on, and
    `watched_since` says so.
    """
    running = LiveExperiment(row)
    settings = running.settings
    running.learner = found = Learner.from_json(learner)
    kept = _sequences(found)
    if kept is not None and (kept.risk, kept.drift) != (settings.risk, settings.drift):
        found.inference.stop()
        kept = None
    if kept is None:
        running.watch()
        running.watched_since = row.created_at if found.round > 1 else None
    elif found._watch is not None:
        expired = settings.expired_loss
        found._watch.patience = settings.patience
        found._watch.expired = None if expired is None else running.losses.scaled(expired)
    if found.guardrails != settings.guardrails:
        found.guardrails = settings.guardrails
    return snapshot(running)


def _refused(error: DecoupledError) -> Invalid:
    return Invalid(f"learner: {str(error).removeprefix('state: ')}")


def _sequences(learner: Learner) -> Sequences | None:
    try:
        return learner.inference.sequences
    except UnsupportedError:  # it is not watched
        return None
