"""The types: Problem (what a learner knows), MNLMDP (the truth), Plan and Episodes (what an agent gives and gets)."""
