"""`decoupled` with a store that does not wait for the disk: for tests that must be able to fail.

    python careless.py OFF serve --store ...

The command itself has no such option.
"""

import sys

from decoupled.cli import run
from decoupled_serve.service.store.sqlite import SqliteStore

if __name__ == "__main__":
    options = SqliteStore.__init__.__kwdefaults__
    assert options is not None
    assert options["synchronous"] == "FULL"
    options["synchronous"] = sys.argv.pop(1)
    run()
