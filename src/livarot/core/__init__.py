"""The nouns (Problem, MNLMDP, Plan, Episodes) and the mathematics of one multinomial-logistic choice."""
