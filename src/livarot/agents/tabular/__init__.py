"""Learners that know nothing of features: empirical kernels, one paper, one file."""
