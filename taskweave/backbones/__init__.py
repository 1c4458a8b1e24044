"""What answers a request: a scripted stand-in, or a model behind an API."""
