"""A run against everything the theory says about it: facts, promises, verdicts."""
