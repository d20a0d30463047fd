"""Many runs: the runs of an experiment, computed in parallel, even if workers die."""
