"""From what a user hands over to a model: constructors, long arrays, checks."""
