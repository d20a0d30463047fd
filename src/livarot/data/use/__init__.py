"""From a fit to decisions: models, plans, policy tables, intervals, warm starts, files."""
