"""Package descriptions and farm policy: model, loader, lock, lint, schema."""
