"""The page for the API's description: plain HTML, made once, that needs no script and nothing from elsewhere."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1c2430, #e6e9ee); --soft: light-dark(#5a6676, #a3adba);
  --line: light-dark(#d9dee5, #39414d); --paper: light-dark(#ffffff, #14181e); --box: light-dark(#f5f7f9, #1d232b); }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; text-transform: capitalize; border-bottom: 1px solid var(--line); }
details { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; background: var(--box); }
summary { padding: .6rem .9rem; cursor: pointer; display: flex; gap: .8rem; flex-wrap: wrap; align-items: baseline; }
summary code { font-weight: 600; overflow-wrap: anywhere; } summary span { color: var(--soft); }
.inside { padding: 0 .9rem .9rem; }
pre { overflow-x: auto; background: var(--paper); padding: .7rem; border-radius: 6px;
  border: 1px solid var(--line); font-size: .85rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .9rem .2rem 0; vertical-align: top; }
"""

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
)
"""The content-security policy of the page: its own style, and nothing else."""


def page(document: dict[str, Any]) -> bytes:
    """Return the page for a description."""
    groups: dict[str, list[str]] = {}
    components = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            groups.setdefault(one["tags"][0], []).append(_operation(path, method, one, components))
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(parts)}" for tag, parts in groups.items())
    info = document["info"]
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>pamo: the API</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>pamo {escape(info['version'])}: the API</h1><p>{escape(info['description'])} "
        'The same for programs: <a href="openapi.json">openapi.json</a>.</p>'
        f"{body}</main></body></html>"
    ).encode()


def _operation(path: str, method: str, one: dict[str, Any], components: dict[str, Any]) -> str:
    parts = [f"<p>{escape(one['description'])}</p>"] if "description" in one else []
    if "parameters" in one:
        rows = "".join(
            f"<tr><td><code>{escape(p['name'])}</code></td><td>{escape(p['in'])}</td>"
            f"<td>{'required' if p['required'] else 'optional'}</td></tr>"
            for p in one["parameters"]
        )
        parts.append(f"<h3>Parameters</h3><table>{rows}</table>")
    body = one.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        parts.append(f"<h3>Body</h3>{_code(_whole(body['schema'], components))}")
    rows = ""
    for status, answer in one["responses"].items():
        rows += f"<tr><td>{status}</td><td>{escape(answer['description'])}</td></tr>"
    parts.append(f"<h3>Answers</h3><table>{rows}</table>")
    first = next(iter(one["responses"].values())).get("content", {}).get("application/json")
    if first and "schema" in first:
        parts.append(_code(_whole(first["schema"], components)))
    return (
        f"<details><summary><code>{method.upper()} {escape(path)}</code><span>{escape(one['summary'])}</span></summary>"
        f'<div class="inside">{"".join(parts)}</div></details>'
    )


def _code(schema: Any) -> str:
    return f"<pre tabindex=0>{escape(json.dumps(schema, indent=2, ensure_ascii=False))}</pre>"


def _whole(schema: Any, components: dict[str, Any]) -> Any:
    """Return a schema with what it refers to in place."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _whole(components[schema["$ref"].rpartition("/")[2]], components)
        return {key: _whole(value, components) for key, value in schema.items()}
    return [_whole(one, components) for one in schema] if isinstance(schema, list) else schema
