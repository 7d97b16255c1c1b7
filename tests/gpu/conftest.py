"""What needs a GPU is collected for `make test-gpu` alone."""

import os

collect_ignore_glob = [] if os.environ.get("DECOUPLED_GPU") else ["test_*.py"]
