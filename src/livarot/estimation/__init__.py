"""Estimating theta: online mirror descent, and maximum likelihood."""
