"""Tables: the rows of one declared table, clean, and of no person more than was declared."""

from __future__ import annotations

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.core.unit import Kind
from incrowd.errors import QuestionRefused
from incrowd.queries.catalog import Relation
from incrowd.queries.language.declared import BASE, Cleaned, cleaned
from incrowd.queries.language.extent import Extent
from incrowd.queries.language.limiting import PLACE, TWIN, own_rows
from incrowd.queries.language.plan import Context, Field, RowQuery
from incrowd.queries.language.trees import alias, column, every, name, present, select
from incrowd.queries.question import PERSON

_TAKEN = "its name is used by the engine. Let the owner of the data rename it."
_IDENTIFIES = "it identifies people. Ask about other columns."
_DRAFTED = "what it can hold was drafted from the rows. Let the owner of the data name a public source for it."


def table_rows(relation: Relation, context: Context) -> RowQuery:
    """Return the rows of a table, each brought into what was declared, and at most `max_rows` of each person.

    Which rows of a person take part is decided by those rows alone: `own_rows` takes the first by a hash of the person
    and of the columns that the question uses.  Hence adding or removing a person changes the result by that person's
    rows only, of which there are at most `max_rows`.  Rows that do not say whose they are belong to nobody whom a bound
    could protect, and are left out.

    Every rule that leaves out a row (for a missing value, or one outside its domain) looks at that row alone, and
    comes before.
    """
    if relation.private and relation.unit.kind not in (Kind.ROW, Kind.PERSON):
        raise QuestionRefused(f"questions protect rows or people, and {relation.name!r} declares something else.")
    person = relation.unit.column if relation.private else None
    asked = _used(relation, context)
    fields = [Field(item, found.meaning.extent) for item, found in asked.items()]
    trees = [alias(found.meaning.tree, item) for item, found in asked.items()]
    keeps = [keep for found in asked.values() for keep in found.keeps]
    if person is not None:
        fields.append(Field(person, Extent(relation.schema[person].type, optional=False), person=True))
        trees.append(alias(column(person, BASE), PERSON))
        keeps.append(present(column(person, BASE)))
    query: exp.Query = select(trees, _table(relation), every(keeps))
    if person is not None:
        decimals = {item.stored for item in fields if item.extent.type is Type.DECIMAL}
        query = own_rows(query, list(asked), relation.unit.max_rows, decimals)
    return RowQuery(
        query=query,
        fields=tuple(fields),
        tables=(relation.name,),
        unit=relation.unit if relation.private else None,
        person=None if person is None else relation.schema[person].type,
        most=relation.unit.max_rows if relation.private else 0,
        datasets=(relation.dataset,) if relation.dataset is not None else (),
        withheld=_withheld(relation),
        names=tuple(item for item in relation.schema.names if item.casefold() not in _withheld(relation)),
        relation=None if relation.private else relation,
    )


def _used(relation: Relation, context: Context) -> dict[str, Cleaned]:
    """Return the columns that the question names, and those that decide whether a row takes part."""
    withheld = _withheld(relation)
    found = {}
    for declared in relation.schema.columns:
        if declared.name.casefold() in withheld or declared.name == relation.unit.column:
            continue
        if context.wanted is None or declared.name.casefold() in context.wanted or declared.may_drop:
            found[declared.name] = cleaned(declared)
    return found


def _withheld(relation: Relation) -> dict[str, str]:
    reasons = dict.fromkeys((PERSON, PLACE, TWIN, "_one"), _TAKEN)
    if not relation.private:
        return reasons
    reasons |= {item.casefold(): _DRAFTED for item in relation.schema.drafted}
    for declared in relation.schema.columns:
        if declared.role is Role.IDENTIFIER and declared.name != relation.unit.column:
            reasons[declared.name.casefold()] = _IDENTIFIES
    return reasons


def _table(relation: Relation) -> exp.Table:
    return exp.Table(this=name(relation.name), alias=exp.TableAlias(this=name(BASE)))
