"""The documentation site; ``make docs`` builds it into ``docs/_build/html``, offline and with warnings as errors."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "livarot"
author = "The livarot developers"
copyright = author
version = release = installed("livarot")

extensions = [
    "sphinx.ext.autodoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sitekit.mathml",
    "sitekit.api",
    "sitekit.environments",
    "sitekit.gallery",
]
exclude_patterns = ["_build", "sitekit", "gallery/GALLERY_HEADER.rst", "**sg_execution_times.rst"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name
    for name in (
        *("ArrayLike", "FloatArray", "IntArray", "Int32Array", "BoolArray", "Pixels"),
        *("RewardLike", "PayLike", "FeatureFunction", "OffsetFunction", "Names", "Asked", "Metric", "JSON"),
    )
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "image_srcset": [],
    "plot_gallery": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,  # its pages ask for scripts of other sites
    "reset_modules": ("matplotlib",),
    "nested_sections": True,
    "subsection_order": ["../examples/gallery/research", "../examples/gallery/data"],
    "show_signature": False,
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "livarot"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_show_search_summary = False  # summaries would be fetched, which a browser refuses for files on disk
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "light"}
html_sidebars = {"index": []}
html_theme_options = {
    "navigation_depth": 2,
    "show_nav_level": 1,
    "collapse_navigation": True,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}


def setup(app):
    from pygments.lexers.special import TextLexer

    app.add_lexer("layers", TextLexer)  # the list of packages in design.md
