"""Compiled passes behind the constants."""
