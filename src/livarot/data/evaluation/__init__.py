"""Off-policy evaluation: what a policy would have earned, from a log that another policy made."""
