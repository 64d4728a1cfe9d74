"""An air-gapped folder: index, wheels and lock for one or more machines."""
