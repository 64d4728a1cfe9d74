"""Writers: a resolution in the lock format that its user works with."""
