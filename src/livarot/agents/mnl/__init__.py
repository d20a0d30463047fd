"""The other learners of MNL mixture MDPs in the literature, one paper, one file."""
