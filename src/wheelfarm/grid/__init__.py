"""Which cells exist, with every refusal explained. Pure."""
