"""The quick reproduction, which several files look at."""

import pytest

from support.quick_run import Quick, quick_run


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Quick:
    return quick_run(tmp_path_factory)
