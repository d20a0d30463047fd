"""Benchmarks against peers and a practical limit, and the workloads they share. Run the scripts from the project's
root: ``python -m benchmarks.check_yardsticks``."""
