"""The paper's experiment and its two figures."""
