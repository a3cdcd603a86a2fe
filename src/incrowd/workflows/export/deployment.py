"""Deployment: an entry for the public registry of differential privacy deployments.

The publisher fills in what only they know (who, for which use, where); the numbers are the certificate's.
"""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from incrowd.core.certificate import COMPOSITION, Amounts
from incrowd.core.rounding import exact, float_up
from incrowd.core.terms import joined
from incrowd.core.words import counted, listed
from incrowd.errors import InvalidParameter
from incrowd.workflows.export.formats import Exported, PublisherInfo, ReleaseDescription, describe
from incrowd.workflows.registry import family_of

_FILL_IN = "to be filled in by the publisher"


def exported(source: Path, publisher: PublisherInfo) -> Exported:
    """Return the description of a release."""
    release = describe(source, publisher)
    return release.exported(document(release))


def document(release: ReleaseDescription) -> str:
    """Return the entry as YAML; a release without an epsilon is refused."""
    if not release.odds.bounded:
        raise InvalidParameter(
            "this release is not differentially private, and the registry lists only releases that are. "
            "Its claims: " + listed([claim.kind for claim in release.certificate.claims]) + "."
        )
    writer, text = YAML(), StringIO()
    writer.width = 4096
    writer.dump(entry(release), text)
    return text.getvalue()


def entry(release: ReleaseDescription) -> dict[str, Any]:
    """Return the entry in plain form."""
    certificate = release.certificate
    curator = release.publisher.curator
    return {
        "url_slug": certificate.id,
        "deployment": {
            "basic": {
                "name": release.name,
                "data_curators": [{"data_curator_name": curator or _FILL_IN, "data_curator_type": _FILL_IN}],
                "description": release.summary,
                "intended_use": _FILL_IN,
                "data_product_type": _product(release),
                "data_product_region": _FILL_IN,
                "data_product_sector": _FILL_IN,
                "publication_date": release.day,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if release.odds.delta == 0 else "Approximate DP",
                "data_domain": _domain(release),
                "unprotected_quantities": release.open,
            },
            "privacy_loss": {
                "privacy_unit": certificate.guarantee.unit.kind.value.capitalize(),
                "privacy_unit_details": f"Two datasets are neighbors if they differ by {certificate.guarantee.unit}.",
                "privacy_parameters": {
                    "epsilon": float_up(exact(certificate.accounting.spent.epsilon)),
                    "delta": float_up(exact(certificate.accounting.spent.delta)),
                },
                "privacy_parameters_details": (
                    f"By {joined(certificate.accounting.rule)}. Charged to this dataset so far: "
                    f"{counted(certificate.accounting.releases, 'release')}, together "
                    f"{_together(certificate.accounting.total)}."
                ),
            },
            "deployment_model": {
                "model_name": "Local" if family_of(certificate.method.name) == "local" else "Central",
                "trust_assumptions": f"Assumed: {release.assumptions}.",
                "release_type": "One release" if certificate.accounting.releases == 1 else "Many releases",
                "data_source_type": _FILL_IN,
                "access_type": "Interactive" if family_of(certificate.method.name) == "queries" else "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _FILL_IN,
                "mechanisms": f"{release.processing} Made by {certificate.tool}.",
                "composition": COMPOSITION,
                "justification": f"Theorem: {certificate.claims[0].source}." if certificate.claims else _FILL_IN,
            },
            "administrative": {"status": "Draft", "registry_authors": [curator or _FILL_IN], "tier": 3},
        },
    }


_FAMILIES_OF_ROWS = {"anonymity", "perturbation", "synthesis"}


def _domain(release: ReleaseDescription) -> str:
    """Return which datasets the guarantee is about; certificates of answers do not list the columns of their tables."""
    names = [column.name for column in release.certificate.schema.columns]
    return f"Tables with the columns {listed(names)}." if names else _FILL_IN


def _product(release: ReleaseDescription) -> str:
    """Return which of the registry's three products this is, by the family of its method."""
    family = family_of(release.certificate.method.name)
    if family == "learning":
        return "Machine learning model"
    return "Dataset" if family in _FAMILIES_OF_ROWS else "Summary statistics"


def _together(total: Amounts) -> str:
    bounded = Decimal(total.epsilon).is_finite()
    return f"epsilon {total.epsilon} and delta {total.delta}" if bounded else "without a bound on the privacy loss"
