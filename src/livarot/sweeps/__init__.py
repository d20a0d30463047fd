"""Many runs: what an experiment asks for, computed in parallel whatever dies."""
