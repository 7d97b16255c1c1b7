"""The judge of the shadows: whether the answer is right. It stands for a stronger model, a rule or a test."""

import re

from decoupled_serve.mirror import Answer, Request


def is_wrong(request: Request, served: Answer, mirrored: Answer) -> float:
    """1 for a wrong answer, 0 for a right one."""
    found = re.search(r"(\d+) \* (\d+)", request.json()["messages"][-1]["content"])
    assert found is not None
    content = mirrored.json()["choices"][0]["message"]["content"]
    return float(content != str(int(found[1]) * int(found[2])))
