"""Learners that use no features but empirical kernels, one paper, one file."""
