"""The farm's word on cells that have no wheel, for the coverage page: read from one document.

``{"schema": "wheelfarm.coverage/1", "cells": [{"cell": ID, "status": "missing" | "refused" |
"failed", "reason": TEXT}]}`` with identifiers of cells as everywhere. It is optional: without it
the page shows what is built, and everything else as missing.
"""

from collections.abc import Mapping
from typing import Any

from packaging.utils import canonicalize_name

from wheelfarm.model.cell import CellId
from wheelfarm.reading import Reader

SCHEMA = "wheelfarm.coverage/1"
STATUSES = ("missing", "refused", "failed")


def read_grid(data: Mapping[str, Any], context: str) -> dict[str, Any]:
    """Return the decisions as pages read them: package, channel, platform, Python.

    Raises FaultsError with everything that is wrong with the document.
    """
    reader = Reader(data, context)
    if (schema := reader.string("schema")) != SCHEMA:
        reader.fault(f"expected {SCHEMA!r}, found {schema!r}", "schema")
    cells: dict[str, Any] = {}
    for table in reader.tables("cells"):
        cell = table.parsed("cell", CellId.parse)
        status = table.choice("status", STATUSES)
        reason = table.string("reason", "")
        table.done()
        if cell is None:
            continue
        package = cells.setdefault(str(canonicalize_name(cell.package)), {})
        channel = package.setdefault(f"{cell.accelerator}/torch{cell.torch}", {})
        platform = channel.setdefault(cell.platform.identifier, {})
        platform[cell.python.dotted] = {"status": status, "reason": reason}
    reader.done()
    reader.finish()
    return {"cells": cells}
