"""The judge of the router, who checks whether the mirrored answer is right.

It stands for whatever you have: a stronger model, a rule, a test of the code that was written. It runs after the
client has its answer, so it may be slow.
"""

from decoupled_serve.mirror import Answer, Request


def is_wrong(request: Request, served: Answer, mirrored: Answer) -> float:
    """1 for a wrong answer, 0 for a right one."""
    left, _, right = request.json()["messages"][-1]["content"].partition(" * ")
    content = mirrored.json()["choices"][0]["message"]["content"]
    return float(content != str(int(left) * int(right)))
