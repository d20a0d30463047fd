"""Plans in stationary models: discounted, average, robust, optimistic and pessimistic, sparse throughout."""
