"""Configuration of the documentation site."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import gpssm

project = "gpssm"
author = "The gpssm developers"
release = gpssm.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "run",
    "notebooks",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "gpssm"
exclude_patterns = ["_build", "_ext", "*.ipynb"]
nitpicky = False
# "path" as the type of an argument is no reference.
suppress_warnings = ["myst.header", "ref.python"]
