"""The static site: simple API, channels, manifest, pages for people."""
