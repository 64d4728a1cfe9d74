"""Write the documentation's screenshots: a small example site, seen with a real Chromium.

Usage: PYTHONPATH=.:src python bin/site_screenshots.py DOCS_FOLDER
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.index.conftest import Farm
from wheelfarm.index.build import build_site
from wheelfarm.index.grid import SCHEMA, read_grid
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.shipped import ShippedTorch
from wheelfarm.upstream.facts import committed_facts

X86 = "manylinux_2_28_x86_64"


def example(folder: Path) -> Farm:
    """Make a site of a few packages."""
    farm = Farm(folder, world=ShippedTorch.of(committed_facts()))
    farm.config = SiteConfig(title="Example wheels", base_url="https://wheels.example/")
    for cuda, torches in (("cu128", ("2.9", "2.10")), ("cu130", ("2.10", "2.12", "2.13"))):
        for torch in torches:
            for python in ("cp310", "cp311", "cp312", "cp313"):
                tags = f"{python}-{python}-{X86}.whl"
                farm.publish(f"diso-0.1.4+{cuda}torch{torch}-{tags}")
                if python != "cp310":
                    farm.publish(f"gsplat-1.5.3+{cuda}torch{torch}-{tags}")
        for python in ("cp311", "cp312", "cp313"):
            tags = f"{python}-{python}-{X86}.whl"
            farm.publish(f"spconv-2.3.8+{cuda}torch{torches[0]}-{tags}", axis="free")
        farm.publish(
            f"llama_cpp_python-0.3.35+{cuda}torch{torches[0]}-py3-none-{X86}.whl", axis="free"
        )
    cells = [
        {
            "cell": f"gsplat-1.5.3-cu130-torch{torch}-cp310-linux_x86_64",
            "status": "refused",
            "reason": "needs Python 3.11",
        }
        for torch in ("2.10", "2.12")
    ]
    failed = {"cell": "gsplat-1.5.3-cu130-torch2.13-cp314-linux_x86_64", "status": "failed"}
    grid = read_grid({"schema": SCHEMA, "cells": [*cells, failed]}, "example")
    build_site(farm.store, farm.tree, farm.config, farm.world, grid=grid)
    return farm


def main() -> None:
    """Write the pictures."""
    docs = Path(sys.argv[1])
    docs.mkdir(parents=True, exist_ok=True)
    path = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        site = example(Path(folder)).site
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, page_path, scheme, width, height in (
            ("find", "index.html", "light", 960, 860),
            ("find-phone", "index.html", "dark", 390, 844),
            ("coverage", "coverage/index.html", "light", 960, 560),
            ("package", "packages/diso/index.html", "dark", 960, 560),
        ):
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page.goto((site / page_path).as_uri())
            if name.startswith("find"):
                page.select_option("#cuda", "cu130")
                page.select_option("#torch", "2.12")
                page.select_option("#python", "3.12")
                page.check("input[value=diso]")
                page.check("input[value=spconv]")
                page.wait_for_selector("pre[data-tool=pip]")
            page.screenshot(path=docs / f"site-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
