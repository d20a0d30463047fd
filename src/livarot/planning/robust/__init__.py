"""Planning against an adversary who moves each transition within a Kullback-Leibler distance."""
