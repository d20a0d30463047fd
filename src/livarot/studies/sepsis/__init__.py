"""Learning to treat in a simulated hospital."""
