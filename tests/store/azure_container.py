"""Azurite, Microsoft's emulator of Azure's blob storage, from npm; and containers in it."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import re
import shutil
import subprocess
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

#: The account that every Azurite has, and its published key (learn.microsoft.com, "Azurite").
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "3.37.0"


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Install Azurite into a folder and run it; yield its address. Skips where npm cannot."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm is not installed")
    words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"azurite@{VERSION}"]
    done = subprocess.run([*words, "--prefix", folder], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm could not install azurite: {done.stderr[-300:]}")
    program = folder / "node_modules/azurite/dist/src/blob/main.js"
    process = subprocess.Popen(
        [
            node,
            program,
            *("--blobHost", "127.0.0.1", "--blobPort", "0"),
            *("--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"),
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        found = (re.search(r"listens on (http://127\.0\.0\.1:\d+)", line) for line in lines)
        yield next(match[1] for match in found if match)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def environment(address: str) -> dict[str, str]:
    """Return the variables that lead obstore to an Azurite."""
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_STORAGE_USE_EMULATOR": "true",
        "AZURITE_BLOB_STORAGE_URL": address,
    }


def create(address: str, container: str) -> None:
    """Make a container: a request signed with the account's key ("Shared Key" authorization)."""
    signed = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    heads = "".join(f"{name}:{value}\n" for name, value in sorted(signed.items()))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
    text = "PUT" + "\n" * 12 + heads + resource
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    signature = base64.b64encode(digest).decode()
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    headers = {**signed, "Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    connection.request("PUT", f"/{ACCOUNT}/{container}?restype=container", headers=headers)
    response = connection.getresponse()
    assert response.status == 201, response.read()
    connection.close()
