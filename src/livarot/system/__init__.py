"""The machine: memory that is recycled, sizes before they are asked for, threads that end when asked to."""
