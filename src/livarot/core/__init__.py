"""What does not depend on the model: one multinomial-logistic choice, lanes, packed matrices, compilation, checks."""
