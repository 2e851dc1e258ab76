"""The site: `make docs` builds it with warnings as errors, without network; what it builds opens from a file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site"))

import himatch

project = "himatch"
author = copyright = "The himatch developers"
version = release = himatch.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "pages"]
exclude_patterns = ["site", "scripts"]
nitpicky = False  # types of NumPy and PyTorch have their pages elsewhere, out of reach without network

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
aliases = ("Act", "Array", "ArrayLike", "Environment", "FeatureFunction", "FeatureSource", "NDArray")
shapes = ("Array64", "Bool", "Float", "Int", "UInt")
autodoc_type_aliases = {name: name for name in aliases + shapes}  # as they are written, not what they stand for
napoleon_google_docstring = False
napoleon_attr_annotations = False
python_maximum_signature_line_length = 90

html_theme = "furo"
html_title = f"himatch {release}"
html_static_path = ["site/static"]
html_css_files = ["himatch.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1a56b0", "color-brand-content": "#1a56b0"},
    "dark_css_variables": {"color-brand-primary": "#8ab4f8", "color-brand-content": "#8ab4f8"},
}
pygments_style, pygments_dark_style = "default", "monokai"
