"""What the documentation site is generated from: public names, docstrings, environments.  Not part of the package."""
