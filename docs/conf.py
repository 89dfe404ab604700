import runpy
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
sys.path.insert(0, str(SOURCE))  # pamo is documented from its source, without being installed
sys.path.insert(0, str(Path(__file__).parent))

project = "pamo"
author = "The pamo contributors"
copyright = author
version = release = runpy.run_path(str(SOURCE / "pamo" / "_version.py"))["__version__"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "code_cells", "mathml"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what arguments are; signatures stay readable
default_role = "code"  # `this` in a docstring is code, as in Markdown

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"pamo {release}"
html_favicon = "../src/pamo/service/dashboard/static/icon.svg"
html_static_path = ["_static"]
html_js_files = ["accessible.js"]
html_css_files = ["reading.css"]
