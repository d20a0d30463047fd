"""To and from Gymnasium: environments of ours for its wrappers, and its tabular environments as models."""
