"""Learning on one endless trajectory: the loop and its judge, and UCMNLK."""
