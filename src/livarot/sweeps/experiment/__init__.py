"""What an experiment asks for: its specification, the keys and names of its runs, and its checks."""
