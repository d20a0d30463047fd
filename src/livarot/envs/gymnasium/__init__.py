"""To and from Gymnasium: our models as environments for its wrappers, and its tabular environments as models."""
