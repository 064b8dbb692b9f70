"""What a function reaches in its file, by the names that it mentions.

Editing one plan generator of a file then leaves the identity of the others, and their measurements, as
they are.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

#: Names by which code reaches what it does not mention.
_BEYOND_NAMES = {"__import__", "__name__", "eval", "exec", "globals"}


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement at the top level of a file."""

    #: ``first``, ``last``: its lines, from 1.
    first: int
    last: int
    text: str
    #: Names that it reads or binds in the module, also within functions.
    mentioned: frozenset[str]
    bound: frozenset[str]
    #: Of its node in the syntax tree.
    kind: type[ast.stmt]


def reached_code(text: str, line: int) -> str:
    """The statements of a file that the one at a line reaches, itself among them.

    It reaches the statements that bind a name that it mentions, those that may change what the name
    stands for, and whatever these reach. Where names do not tell, all of the file is returned. What a
    function finds by a registered name, or imports from other files, is not reached.

    ``text``: of the file. ``line``: a line of the statement, from 1.
    """
    try:
        statements = list(_statements(text))
    except SyntaxError:  # edited since it was loaded
        return text
    reached = [each for each in statements if each.first <= line <= each.last]
    if len(reached) != 1:
        return text
    local = frozenset().union(*(s.bound for s in statements if not _is_import(s)))
    names = reached[0].mentioned
    while new := [s for s in statements if s not in reached and _is_reached(s, names, local)]:
        reached += new
        names = names.union(*(each.mentioned for each in new))
    if names & _BEYOND_NAMES:
        return text
    return "\n".join(each.text for each in statements if each in reached)


def _statements(text: str) -> Iterator[_Statement]:
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and "__name__" in _names(ast.unparse(node.test))[0]:
            continue  # for a script, and the file is none here
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        last = node.end_lineno or node.lineno
        mentioned, bound = _names(ast.unparse(node))
        own = "".join(lines[first - 1 : last])
        yield _Statement(first, last, own, mentioned, bound, type(node))


def _names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the module that a statement mentions, and those that it binds."""
    module = symtable.symtable(text, "", "exec")
    bound = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    mentioned = set(module.get_identifiers())
    inner = list(module.get_children())
    while inner:
        scope = inner.pop()
        inner += scope.get_children()
        mentioned |= {each.get_name() for each in scope.get_symbols() if each.is_global()}
        bound |= {each.get_name() for each in scope.get_symbols() if each.is_declared_global()}
    return frozenset(mentioned), frozenset(bound)


def _is_import(statement: _Statement) -> bool:
    return issubclass(statement.kind, ast.Import | ast.ImportFrom)


def _is_reached(statement: _Statement, names: frozenset[str], local: frozenset[str]) -> bool:
    """Whether a statement binds one of these names, or may change what one stands for."""
    if statement.bound & names or (_is_import(statement) and not statement.bound):
        return True  # an import of * binds whatever it finds
    if issubclass(
        statement.kind,
        ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom,
    ) or (statement.bound and issubclass(statement.kind, ast.Assign | ast.AnnAssign)):
        return False
    # A call or a loop is about what it mentions of the file, or else about what is imported.
    return bool((statement.mentioned & local or statement.mentioned) & names)
