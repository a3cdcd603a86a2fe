from __future__ import annotations

collect_ignore = ["version_1/make.py"]  # it was run at version 1 and shows how its files were made
