"""Random streams and rollouts."""
