"""Variants of LIVAROT, one file each."""
