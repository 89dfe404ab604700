"""Write what the TypeScript client knows of the service, from the service's own description.

Usage: python scripts/typescript_api.py [--check]

It writes clients/typescript/api.d.ts (the types) and api.js (paths, codes, errors); --check only tells whether they
are up to date.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from pamo.contract.codes import CODES
from pamo.errors import ERRORS
from pamo.service.openapi import describe
from pamo.service.operations import OPERATIONS

FOLDER = Path(__file__).parents[1] / "clients" / "typescript"
WRITTEN = "// Written by scripts/typescript_api.py from the service's own description: change that, not this.\n"
WORDS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def files() -> dict[str, str]:
    """Return the generated files by name."""
    description = describe(OPERATIONS, None, keys=True, max_batch=1000)
    return {"api.d.ts": _types(description), "api.js": _tables(description)}


def _operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return method, path and description of the operations that answer with JSON, or with nothing."""
    found = []
    for path, methods in description["paths"].items():
        for method, one in methods.items():
            success = next(answer for status, answer in one["responses"].items() if status.startswith("2"))
            if set(success.get("content", ())) <= {"application/json"}:
                found.append((method.upper(), path, one))
    return found


def _tables(description: dict[str, Any]) -> str:
    operations = {one["operationId"]: [method, path] for method, path, one in _operations(description)}
    tables: dict[str, dict[str, Any]] = {
        "OPERATIONS": operations,
        "CODES": {str(status): code.value for status, code in sorted(CODES.items()) if status >= 400},
        "ERRORS": {str(code): kind.__name__ for code, kind in ERRORS.items()},
    }
    lines = [WRITTEN]
    for name, table in tables.items():
        rows = "".join(f"  {_key(key)}: {json.dumps(value)},\n" for key, value in table.items())
        lines.append(f"export const {name} = {{\n{rows}}};\n")
    return "\n".join(lines)


def _types(description: dict[str, Any]) -> str:
    parts = [WRITTEN]
    for name, schema in description["components"]["schemas"].items():
        parts.append(f"{_comment(schema)}export interface {name} {_object(schema, '')}\n")
    rows = []
    for _, path, one in _operations(description):
        fields = ["id: string"] if "{id}" in path else []
        queries = [given for given in one.get("parameters", ()) if given["in"] == "query"]
        if queries:
            asked = "; ".join(f"{given['name']}?: {_type(given['schema'], '')}" for given in queries)
            fields.append(f"query?: {{ {asked} }}")
        if "requestBody" in one:
            mark = "" if one["requestBody"]["required"] else "?"
            fields.append(f"body{mark}: {_type(one['requestBody']['content']['application/json']['schema'], '')}")
        if any(given["name"] == "Idempotency-Key" for given in one.get("parameters", ())):
            fields.append("key?: string")
        success = next(answer for status, answer in one["responses"].items() if status.startswith("2"))
        content = success.get("content", {}).get("application/json")
        answer = "undefined" if content is None else _type(content["schema"], "")
        given = f"{{ {'; '.join(fields)} }}" if fields else "Record<string, never>"
        rows.append(f"  /** {one['summary']} */\n  {one['operationId']}: {{ given: {given}; answer: {answer} }};\n")
    comment = "/** What every operation takes and answers, by its name. */"
    parts.append(f"{comment}\nexport interface Operations {{\n{''.join(rows)}}}\n")
    return "\n".join(parts)


def _type(schema: dict[str, Any], indent: str) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "anyOf" in schema and "properties" not in schema:
        return " | ".join(dict.fromkeys(_type(one, indent) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        # A tuple of fixed parts is one in TypeScript as well.
        if "prefixItems" in schema:
            return f"[{', '.join(_type(one, indent) for one in schema['prefixItems'])}]"
        inner = _type(schema.get("items", {}), indent)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object":
        return _object(schema, indent)
    return WORDS.get(kind, "unknown") if isinstance(kind, str) else "unknown"


def _object(schema: dict[str, Any], indent: str) -> str:
    if "properties" not in schema:
        values = schema.get("additionalProperties", {})
        return f"Record<string, {_type(values, indent) if isinstance(values, dict) else 'unknown'}>"
    inner = indent + "  "
    rows = []
    for name, one in schema["properties"].items():
        mark = "" if name in schema.get("required", ()) else "?"
        kind = _type(one, inner)
        if mark:
            kind += " | undefined"
        rows.append(f"{textwrap.indent(_comment(one), inner)}{inner}{_key(name)}{mark}: {kind};\n")
    return f"{{\n{''.join(rows)}{indent}}}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*|[1-9]\d*", name) else json.dumps(name)


def _comment(schema: dict[str, Any]) -> str:
    """Return a description as a comment, without the examples that are Python's."""
    text = schema.get("description", "").partition("\n\n    >>>")[0]
    lines = [line.strip() for line in text.strip().splitlines()]
    if not lines:
        return ""
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def main() -> int:
    """Write the files, or with --check tell which are out of step."""
    stale = 0
    for name, text in files().items():
        path = FOLDER / name
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"clients/typescript/{name} is out of step: run python scripts/typescript_api.py", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
