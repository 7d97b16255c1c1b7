"""What copies cost, held against a budget."""

from pathlib import Path

import pytest

import decoupled as dc
from decoupled.errors import ParameterError
from decoupled_serve.mirror.spending import Spending


def test_what_was_set_aside_counts_until_the_price_is_known() -> None:
    spending = Spending(dc.Budget(cost={"a": 0.25, "b": 0.5}, total=1.0), ["a", "b"])
    first = spending.begin(["a", "b"])  # which arm it will be is not known yet
    assert spending.allows(["a", "b"])
    second = spending.begin(["a", "b"])
    assert not spending.allows(["a"])
    spending.end(first)
    spending.end(second, "a", 0.3)
    assert float(spending.meter.spent) == 0.3
    spending.begin(["a"])
    assert float(spending.meter.spent) == 0.6, "a copy counts as the dearest of its arm"


def test_what_was_set_aside_in_one_period_is_not_given_back_in_the_next() -> None:
    now = 5.0
    spending = Spending(dc.Budget(cost=0.5, allowance=(1.0, 10.0)), ["a"], clock=lambda: now)
    early = spending.begin(["a"])
    now = 15.0
    late = spending.begin(["a"])
    spending.end(early, "a", 0.25)
    assert float(spending.meter.spent_in_period) == 0.75
    spending.end(late, "a", 0.25)
    assert float(spending.meter.spent_in_period) == 0.5
    assert float(spending.meter.spent) == 0.5


def test_what_was_spent_and_the_dearest_copy_survive_a_restart(tmp_path: Path) -> None:
    file, budget = tmp_path / "spent", dc.Budget(cost=0.1, total=2.0)
    spending = Spending(budget, ["a", "b"], file)
    spending.end(spending.begin(["a"]), "a", 0.95)
    spending.save()
    again = Spending(budget, ["a", "b"], file)
    assert float(again.meter.spent) == 0.95
    again.begin(["a"])
    assert not again.allows(["a"])
    assert again.allows(["b"])
    file.write_text("[0.5, 0.5, 0, 0.1]")
    with pytest.raises(ParameterError, match="spent: cannot be read; remove it to count from 0"):
        Spending(budget, ["a"], file)
