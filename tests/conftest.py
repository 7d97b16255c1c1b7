"""What holds for all tests."""

import gc


def pytest_collection_finish() -> None:
    # Five thousand tests stay until the end, and the compiler makes much that lives long. Looking through
    # all of it for garbage, again and again, takes time and finds little.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
