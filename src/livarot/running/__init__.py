"""One run: an agent against a model, many seeds at once, judged exactly."""
