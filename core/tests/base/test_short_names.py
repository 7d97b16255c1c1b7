"""Names in legends and tables are short, and tell what is shown apart."""

from itertools import combinations

import decoupled as dc
from decoupled.base.names import LONGEST, short_labels

EVERY = [policy for kind in dc.Policy.known().values() for policy in kind.examples()]
LONG = dc.FTPL(alpha=2.0, c=1.0, ranking="sorting", estimator="centred", c_exploit=0.5, kappa=0.4, lam=0.3)


def test_every_policy_shown_together_with_others_has_a_short_name_of_its_own() -> None:
    names = short_labels(EVERY)
    assert len(set(names)) == len(EVERY)
    assert max(map(len, names)) <= 48
    assert max(len(policy.label) for policy in EVERY) > 90  # or nothing was shortened
    for one, other in combinations(EVERY, 2):
        first, second = short_labels([one, other])
        assert first != second
    assert all(len(short_labels([each])[0]) <= LONGEST + 2 for each in EVERY)


def test_a_label_keeps_what_tells_it_apart() -> None:
    other = dc.FTPL(
        alpha=2.0, c=1.0, ranking="sorting", estimator="centred", c_exploit=0.5, kappa=0.4, lam=0.1
    )
    assert [("lam=0.3" in name, "lam=0.1" in name) for name in short_labels([LONG, other])] == [
        (True, False),
        (False, True),
    ]
    assert short_labels([dc.Ladder()]) == ["Ladder"]
    near = [dc.FTPL(**{**vars(LONG), "lam": 0.3 + shift}) for shift in (1e-9, 2e-9)]
    assert short_labels(near) == [policy.label for policy in near]
    sweep = [dc.FTPL(c=c) for c in (0.5, 2.0, 4.0)]
    assert short_labels([*sweep, dc.Exp3()]) == ["FTPL(c=0.5)", "FTPL(c=2)", "FTPL(c=4)", "Exp3"]
    grid = [dc.FTPL(alpha=alpha, c=c) for alpha in (2.0, 3.0) for c in (1.0, 2.0)]
    assert short_labels(grid)[1] == "FTPL(alpha=2, c=2)"
    # A preset has a name, and None says nothing.
    assert short_labels([dc.FTPL(), dc.Ladder()]) == ["FTPL", "Ladder"]
    assert short_labels([dc.FTPL(), dc.FTPL(c_exploit=3.0)]) == ["FTPL", "FTPL(c_exploit=3)"]
