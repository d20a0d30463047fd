"""Arithmetic that knows no model: one multinomial-logistic choice, lanes, packed matrices, compilation, checks."""
