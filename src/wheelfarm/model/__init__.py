"""The values that every stage shares: versions, accelerators, cells, wheel names, decisions."""
