"""Cells minus what the store has, as jobs and batches. Pure."""
