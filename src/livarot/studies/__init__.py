"""The experiments of the paper and our own, each with its figures and its text."""
