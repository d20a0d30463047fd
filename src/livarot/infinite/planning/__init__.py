"""Plans in stationary models: discounted, average, robust and optimistic, sparse throughout."""
