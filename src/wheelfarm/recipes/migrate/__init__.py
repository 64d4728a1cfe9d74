"""An existing farm of another shape in, a farm of ours out; what has no meaning here is listed."""
