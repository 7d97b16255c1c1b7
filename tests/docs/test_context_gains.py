"""The tool behind the picture of docs/context.md, on made-up questions where the recorded ones are not at hand."""

import numpy as np
import pytest

from support.doc_tools import tool

gains = tool("context_gains")


def test_a_context_pays_and_shuffled_labels_do_not() -> None:
    # One run of 3,000 questions with four subjects, of which one needs the dear model; seeded.
    draw = np.random.default_rng(1)
    subject = draw.integers(4, size=3_000)
    means = np.where(subject[:, None] == 0, [0.9, 0.1], [0.2, 0.15])
    wrong, names = (draw.random((3_000, 2)) < means).astype(float), [f"s{each}" for each in subject]
    told = gains.gains(gains.table(wrong, names, 0.15, "subject"), runs=2)
    untold = gains.gains(gains.table(wrong, names, 0.15, "noise"), runs=2)
    assert told["contextual"].mean() > 100.0 > told["pooled"].mean()
    assert untold["contextual"].mean() > -100.0
    assert set(told) == set(gains.POLICIES)


def test_made_up_questions_look_like_the_recorded_ones() -> None:
    wrong, subjects = gains.made_up(2_000)
    assert wrong.shape == (2_000, 2)
    assert len(set(subjects)) == 57
    shuffled = gains.table(wrong, subjects, 0.1, "noise")
    assert sorted(shuffled.context["subject"]) == sorted(subjects)
    assert shuffled.losses.max() <= 1.0


def test_nothing_is_measured_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DECOUPLED_DATA", raising=False)
    with pytest.raises(SystemExit, match="DECOUPLED_DATA"):
        next(gains.measure())
