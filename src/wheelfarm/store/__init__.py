"""Wheels and their reports, by content hash, behind one protocol."""
