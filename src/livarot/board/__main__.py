"""``python -P -m livarot.board STORE PORT [PARENT]``: serve the board, at most as long as the process PARENT lives.

Without ``-P`` Python would look in the current folder first for whatever streamlit imports.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from livarot.board import arguments

BEAT = 0.5  # seconds


def end_with(parent: int) -> None:
    """End this process when its parent has ended, whatever ended that."""
    while os.getppid() == parent:
        time.sleep(BEAT)
    os._exit(3)  # a board only reads: nothing is lost


if __name__ == "__main__":
    if len(sys.argv) > 3:
        threading.Thread(target=end_with, args=(int(sys.argv[3]),), daemon=True).start()
    line = arguments(sys.argv[1], int(sys.argv[2]))
    from streamlit.web.cli import main

    main(line, prog_name="streamlit")
