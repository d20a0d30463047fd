"""Does regret follow sigma_bar?"""
