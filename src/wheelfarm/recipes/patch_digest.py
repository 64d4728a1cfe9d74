"""A recipe's patches in, one hash out: what changes a source between fetch and build."""

import hashlib

from wheelfarm.recipes.model import Recipe


def patch_digest(recipe: Recipe) -> str:
    """Return a hash of the patches' bytes in their order, the script's, and the subdirectory."""
    digest = hashlib.sha256(recipe.build_subdir.encode())
    scripts = () if recipe.patch_script is None else (recipe.patch_script,)
    for path in (*recipe.patches, *scripts):
        digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
