"""Formulas: from the text a user writes to the columns of a design."""
