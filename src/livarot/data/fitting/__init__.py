"""From observed choices to an estimate and its uncertainty."""
