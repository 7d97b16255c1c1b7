"""What several test files share: twins, stores, a browser, a running service."""
