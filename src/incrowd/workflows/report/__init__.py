"""Report: a certificate as one page for the person who signs; it loads nothing and runs no script."""

from incrowd.workflows.report.page import internal_report, public_report
from incrowd.workflows.report.summary import summary_html

__all__ = ["internal_report", "public_report", "summary_html"]
