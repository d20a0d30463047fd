"""From observed choices to an estimate, and what it is worth."""
