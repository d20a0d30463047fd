"""``python -m livarot`` is the command ``livarot``."""

from livarot.cli import main

if __name__ == "__main__":
    main()
