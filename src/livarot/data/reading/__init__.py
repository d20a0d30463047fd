"""From tables to observed choices."""
