"""From a cell and a recipe to a wheel, one module per step."""
