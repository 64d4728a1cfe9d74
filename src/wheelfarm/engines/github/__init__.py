"""The GitHub engine: workflows whose steps are single ``wheelfarm`` lines, and their check."""
