"""The names of experiments, tenants and tags: one rule, by which each is a segment of a path, a label and a file name."""

import re

NAME_SHAPE = "[A-Za-z0-9][A-Za-z0-9._-]*"
LONGEST_NAME = 100
_SHAPE = re.compile(NAME_SHAPE)


def is_name(value: object, longest: int = LONGEST_NAME) -> bool:
    """Whether a value is a name.

    >>> is_name("checkout-2.1"), is_name(".."), is_name("a/b"), is_name(7)
    (True, False, False, False)
    """
    return isinstance(value, str) and len(value) <= longest and _SHAPE.fullmatch(value) is not None


def name_rule(longest: int = LONGEST_NAME) -> str:
    """The rule, for an error.

    >>> name_rule()
    'must be 1 to 100 letters, digits, dots, dashes and underscores, a letter or a digit first'
    """
    return (
        f"must be 1 to {longest} letters, digits, dots, dashes and underscores, a letter or a digit first"
    )
