"""Radii of the confidence sets."""
