"""`pamo demo`: a page on which to try it, in one command."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from typing import Any

from pamo.cli.options import add_command, whole
from pamo.errors import InputError

_HELP = """\
You are offered restaurants, rate them, and see what it thinks you care about. Everything happens on this machine.

examples:
  pamo demo                          open the page in the browser; Ctrl+C ends it
  pamo demo --no-browser --port 8010
  pamo demo --store demo.db          keep what it learns, and go on from there next time
"""


def add_demo(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "demo",
        _demo,
        help="try it on yourself: rate restaurants in the browser, and see what it learns of you",
        about="Serve a page on which to try it, and open it in the browser.",
        examples=_HELP,
    )
    parser.add_argument("--store", metavar="FILE", help="a SQLite file to keep everything in (default: memory)")
    parser.add_argument("--port", type=whole, default=0, metavar="N", help="the port to serve on (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")


def _demo(options: argparse.Namespace) -> int:
    from pamo.service import require

    require()
    from pamo.service.demo import demo_edition, demo_settings
    from pamo.service.server import serve

    if options.store is not None and (options.store == "memory:" or "://" in options.store):
        raise InputError(f"expected --store to be the path of a file, got {options.store!r}")
    settings = demo_settings("memory:" if options.store is None else options.store, options.port)
    kept = "nothing is kept" if options.store is None else f"what is learned is kept in {options.store}"

    def started(address: str) -> None:
        print(f"Try it at {address}/try\nCtrl+C ends it; {kept}.", flush=True)
        if not options.no_browser:
            threading.Thread(target=_open, args=(f"{address}/try",), daemon=True).start()

    return serve(settings, demo_edition(started=started))


def _open(address: str) -> None:
    """Open the page, if there is a browser with windows: one for the terminal would take it over."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(address)
