"""Labels some of the answers: it knows which products are right.

It stands for whoever knows in your case: a person (`to = "console"`), the tests of the code that was written, a stronger model.
"""

import re

from decoupled_serve.mirror import Answer, Request


def right(request: Request, served: Answer, mirrored: Answer) -> dict[str, str]:
    """Prefer the answer that is right; two right ones are a tie, and two wrong ones too."""
    left, *factor = (int(each) for each in re.findall(r"\d+", request.text))
    is_right = [str(left * factor[0]) in answer.text for answer in (served, mirrored)]
    if is_right[0] == is_right[1]:
        return {"preference": "tie"}
    return {"preference": "explore" if is_right[1] else "exploit"}
