"""Small farms as files, for the tests of recipes, grid and plan."""

from pathlib import Path

POLICY = """\
platforms: [linux_x86_64, linux_aarch64, windows_amd64]
python_min: "3.10"
supported_cudas: ["12.4", "12.6", "12.8", "12.9", "13.0", "13.2"]
arch_policy:
  "12.4": "5.0;6.0;7.0;7.5;8.0;8.6;9.0+PTX"
  "12.6": "5.0;6.0;7.0;7.5;8.0;8.6;9.0+PTX"
  "12.8": "7.5;8.0;8.6;9.0;10.0;12.0+PTX"
  "12.9": "7.5;8.0;8.6;9.0;10.0;12.0+PTX"
  "13.0": "7.5;8.0;8.6;9.0;10.0;12.0+PTX"
  "13.2": "7.5;8.0;8.6;9.0;10.0;12.0+PTX"
arch_policy_aarch64:
  "12.4": "8.0;9.0+PTX"
  "12.6": "8.0;9.0+PTX"
  "12.8": "8.0;9.0;10.0;12.0+PTX"
  "12.9": "8.0;9.0;10.0;12.0+PTX"
  "13.0": "8.0;9.0;10.0;11.0;12.0+PTX"
  "13.2": "8.0;9.0;10.0;11.0;12.0+PTX"
"""


def write_farm(folder: Path, recipes: dict[str, str], policy: str = POLICY) -> Path:
    """Write a farm: its policy, and recipes by folder name (their text)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "farm.yml").write_text(policy)
    for name, text in recipes.items():
        own = folder / "recipes" / name
        own.mkdir(parents=True, exist_ok=True)
        (own / "recipe.yml").write_text(text)
    return folder


def recipe(name: str, *lines: str) -> str:
    """Return a recipe of a PyPI release with more lines."""
    return "\n".join([f"name: {name}", f"source: {{pypi: {name}==1.0}}", *lines, ""])
