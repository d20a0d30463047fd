"""Where runs are kept: a file each, an index that can be rebuilt, nothing half-written."""
