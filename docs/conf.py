"""How the documentation is built: `sphinx-build -W docs OUT`; the pages load nothing from a network."""

from importlib.metadata import version as installed

project = "incrowd"
author = "the incrowd authors"
copyright = "the incrowd authors"
release = version = installed("incrowd")

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist", "colon_fence", "fieldlist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = "incrowd"
html_static_path = ["_static"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"font-stack": "system-ui, sans-serif", "font-stack--monospace": "ui-monospace, monospace"},
    "dark_css_variables": {"font-stack": "system-ui, sans-serif", "font-stack--monospace": "ui-monospace, monospace"},
}
