"""SQLAlchemy's own tests of dialects, without those that make tables: their server only reads.

pytest --rootdir . --confcutdir . -c setup.cfg suite.py --dburi incrowd+http://:TOKEN@localhost:8000/?epsilon=0.1
"""

from __future__ import annotations

from sqlalchemy.testing import fixtures, suite

_MAKE_TABLES = (
    "BizarroCharacterTest", "CastTypeDecoratorTest", "ComponentReflectionTestExtra", "DifficultParametersTest",
    "EscapingTest", "FutureTableDDLTest", "IntegerTest", "LongNameBlowoutTest", "NumericTest", "StringTest",
    "TableDDLTest",
)  # fmt: skip


def _applies(name: str, test: object) -> bool:
    if not isinstance(test, type) or not issubclass(test, fixtures.TestBase):
        return False
    return not issubclass(test, fixtures.TablesTest) and name not in _MAKE_TABLES


globals().update({name: test for name, test in vars(suite).items() if _applies(name, test)})
