"""Can what is installed load, and if not, why and what mends it."""
