"""The page's HTML: a shell for each view, without any data, which the view's module then asks the API for."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from starlette.responses import Response

from pamo._version import __version__
from pamo.service.dashboard.assets import Assets, assets

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""The content-security policy of every view: files of this service, and nothing inline."""

HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class View:
    """A view: where it is, what it is called, and the module that fills it.

    under: the view of the menu that it belongs to, its own path by default. label: its name in the menu, None for a
    view that is not there. lead: a sentence below the title. open: whether it can be used without a key. style: a
    style sheet of its own.
    """

    path: str
    title: str
    module: str
    label: str | None = None
    under: str | None = None
    lead: str = ""
    open: bool = False
    style: str | None = None


VIEWS: tuple[View, ...] = (
    View("/", "Overview", "overview.js", "Overview", lead="Is it learning, and how busy is it?"),
    View("/arms", "Arms", "arms.js", "Arms", lead="How each arm does by objective, and which no other arm beats."),
    View("/users", "Users", "users.js", "Users", lead="Find a user, and see what they care about."),
    View("/users/{id}", "User", "user.js", under="/users"),
    View("/what-if", "What if", "what-if.js", "What if", lead="Which arms are best for somebody with these weights."),
)
"""The views of the menu, in its order, and those behind them."""


def shell(view: View, views: tuple[View, ...], files: Assets, *, keys: bool, base: str = "") -> bytes:
    """Return a view's HTML. keys: whether the visitor has to sign in with one. base: where a project's paths begin."""
    here = view.under or view.path
    current = {here: " aria-current=page"}
    menu = "".join(
        f'<li><a href="{base}{escape(one.path)}"{current.get(one.path, "")}>{escape(one.label)}</a></li>'
        for one in views
        if one.label is not None
    )
    lead = f'<p class="lead">{escape(view.lead)}</p>' if view.lead else ""
    own = f'\n<link rel="stylesheet" href="{files.path(view.style)}">' if view.style else ""
    needs = "needed" if keys and not view.open else "none"
    name = f' <span class="project">{escape(base.rpartition("/")[2])}</span>' if base else ""
    return f"""<!doctype html>
<html lang="en" data-keys="{needs}" data-base="{base}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(view.title)} · {base.rpartition("/")[2] or "pamo"}</title>
<link rel="icon" href="{files.path("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="{files.path("style.css")}">{own}
<script src="{files.path("theme.js")}"></script>
<script type="module" src="{files.path("shell.js")}"></script>
<script type="module" src="{files.path(view.module)}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="{base}/"><img src="{files.path("icon.svg")}" alt="" width="26" height="26">pamo{name}</a>
<nav aria-label="Views"><ul>{menu}</ul></nav>
<div class="tools">
<button type="button" id="sign-out" class="quiet" hidden>Sign out</button>
<button type="button" id="theme" class="quiet" hidden>Theme</button>
</div>
</header>
<main id="main" tabindex="-1">
<div class="title"><h1 id="title">{escape(view.title)}</h1>{lead}</div>
<noscript><p class="notice">This page draws what the API answers, and needs JavaScript for it. The same numbers are in
<a href="{base}/docs">the API</a>.</p></noscript>
<div id="trouble" role="alert"></div>
<div id="view"></div>
</main>
<footer><p>pamo {escape(__version__)} · <a href="{base}/docs">API</a></p></footer>
</body>
</html>
""".encode()


class Pages:
    """The views and their files. None of them takes a key, since none holds anything."""

    def __init__(self, *, keys: bool, views: tuple[View, ...] = VIEWS, base: str = "") -> None:
        self._files = files = assets()
        self._shells = {
            tuple(view.path.split("/")[1:]): shell(view, views, files, keys=keys, base=base) for view in views
        }

    def find(self, parts: tuple[str, ...]) -> Response | None:
        """Return the view or the file at a path of these parts, if there is one."""
        html = self._shells.get(parts) or (len(parts) == 2 and parts[1] and self._shells.get((parts[0], "{id}")))
        if html:
            return Response(html, media_type="text/html", headers=HEADERS)
        if len(parts) == 3 and parts[0] == "assets" and parts[2] in self._files.files:
            content, kind = self._files.files[parts[2]]
            # Under its stamp a file never changes; a page from before an update gets today's, and is not to keep it.
            keep = "public, max-age=31536000, immutable" if parts[1] == self._files.stamp else "no-store"
            headers = {"content-type": kind, "cache-control": keep, "x-content-type-options": "nosniff"}
            return Response(content, headers=headers)
        return None
