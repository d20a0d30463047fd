"""What users say in their own terms: units of rewards and costs, which actions exist, what follows a step."""
