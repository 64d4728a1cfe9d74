"""Facts of a machine plus an index: the exact wheels, or a precise reason why there are none."""
