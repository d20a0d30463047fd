"""Learners of one decision: closed-form optimism of multinomial logit bandits."""
