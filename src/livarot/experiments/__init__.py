"""Runs, their judge, and the paper's experiment."""
