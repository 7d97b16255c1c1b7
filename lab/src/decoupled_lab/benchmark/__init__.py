"""A frozen suite of tasks that any policy can enter: `decoupled benchmark`."""
