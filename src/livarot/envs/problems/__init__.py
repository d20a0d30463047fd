"""Named problems, one file each."""
