"""Solutions over HTTP, and a page to play on. Needs the extra `web`."""
