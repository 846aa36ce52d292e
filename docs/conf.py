"""The site: `python -m sphinx -W --keep-going -b html docs build/site`, after `pip install -e '.[docs]'`."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS / "gallery"), str(DOCS.parent)]

import dpfast  # noqa: E402

SITE = "https://dpfast.readthedocs.io/en/latest/"

project = "dpfast"
author = "The dpfast developers"
project_copyright = author
version = release = dpfast.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "navigation",
    "reference",
]
exclude_patterns = ["gallery", "_extensions"]
nitpicky = True
smartquotes = False

# Markdown pages. Headings get the anchors that repositories give them.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

# The reference of the functions and classes.
autosummary_generate = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
maximum_signature_line_length = 88
add_module_names = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"dpfast {version}"
html_baseurl = SITE
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "ignore_pattern": "gallery_style",
    "image_scrapers": ("gallery_style.svg_scraper",),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}
