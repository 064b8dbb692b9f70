"""Error messages for texts that are not valid patterns."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from cepbench.errors import PatternError, PatternSyntaxError, UnsupportedPatternError, did_you_mean
from cepbench.patterns.model import ORDERS, OUTPUTS, STRATEGIES, Pattern

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedInput


class Span(NamedTuple):
    """A piece of the text, ``text[start:end]``."""

    start: int
    end: int


#: Description of each token of the grammar, in the order in which messages list them.
_WORDS = {
    word: word.replace("_", " ")
    for word in (
        "PATTERN", "WITHIN", "WHERE", "ORDER_BY", "STRATEGY", "OUTPUT", "GROUP_BY", "AGG", "RETURN",
        "AND", "OR",
    )
} | {
    "_COMMA": "a comma",
    "_LPAR": "an opening bracket",
    "_RPAR": "a closing bracket",
    "_LSQB": "an opening square bracket",
    "_RSQB": "a closing square bracket",
    "_LBRACE": "an opening brace",
    "_RBRACE": "a closing brace",
    "_DOT": "a dot and an attribute, as in a.price",
    "COMPARE": "a comparison (<, <=, >, >=, =, !=)",
    "$END": "the end of the pattern",
}  # fmt: skip
_OPERATORS = ("SEQ", "AND", "OR", "NOT", "KL", "GROUP")
_CLAUSES = ("WHERE", "ORDER_BY", "STRATEGY", "OUTPUT", "GROUP_BY", "AGG", "WITHIN", "RETURN")
_ORDER = "PATTERN … WHERE … ORDER BY … STRATEGY … OUTPUT … GROUP BY … AGG … WITHIN …"
_KEYWORDS = ("PATTERN", *_OPERATORS, *_CLAUSES)

#: Clauses of other papers' languages that this one lacks.
_OTHER_CLAUSES = ("HAVING", "PARTITION", "LIMIT")

#: SQL comparisons that this language lacks, and their equivalents without and with NOT; {x} is the
#: left operand.
_SQL = {
    "BETWEEN": ("{x} >= 1 AND {x} <= 2", "({x} < 1 OR {x} > 2)"),
    "IN": ("({x} = 1 OR {x} = 2)", "{x} != 1 AND {x} != 2"),
}
_SQL_TEXTS = ("LIKE", "ILIKE", "RLIKE", "REGEXP", "SIMILAR", "MATCHES", "CONTAINS")

#: How many characters before an error are searched for words.
_NEARBY = 200


def error_at(kind: type[PatternError], message: str, text: str, span: Span) -> PatternError:
    """An error of this kind that shows line, column and the offending text."""
    start = min(span.start, len(text.rstrip()))
    # Split as the error splits it; the sentinel keeps an empty last line.
    lines = (text[:start] + "x").splitlines()
    rest = (text[start : span.end] + " ").splitlines()[0].rstrip()
    return kind(message, text=text, line=len(lines), column=len(lines[-1]), length=len(rest) or 1)


def syntax_error(text: str, error: UnexpectedInput) -> PatternError:
    """The error for an unexpected token: position, what was expected, and the nearest keyword."""
    span, kind = _found(text, error)
    found = text[span.start : span.end]
    state = error.interactive_parser
    accepted = set(state.accepts())
    stack = [getattr(value, "type", "") for value in state.parser_state.value_stack]
    if missing := _not_built_yet(text, span, accepted, stack):
        what, place = missing
        return error_at(UnsupportedPatternError, what, text, place)
    if sql := _of_sql(text, span, accepted, stack):
        return error_at(PatternSyntaxError, sql, text, span)
    if operator := _misspelled_operator(text, span, kind, stack):
        message, place = operator
        return error_at(PatternSyntaxError, message, text, place)
    shown = "the text ends here" if kind == "$END" else f"unexpected {found!r}"
    message = f"{shown}; expected {_expected(accepted, stack)}"
    hint = _hint(text, span, kind, accepted, stack)
    return error_at(PatternSyntaxError, f"{message}{hint}", text, span)


def _found(text: str, error: UnexpectedInput) -> tuple[Span, str]:
    """The offending span and its token's type, which is empty if no token matches there."""
    token: Token | None = getattr(error, "token", None)
    if token is None:
        start = error.pos_in_stream or 0
        return Span(start, start + 1), ""
    if token.type == "$END":
        return Span(len(text.rstrip()), len(text.rstrip()) + 1), "$END"
    start = token.start_pos or 0
    return Span(start, start + len(token)), token.type


def _in_structure(stack: list[str]) -> bool:
    return set(_CLAUSES).isdisjoint(stack)


def _in_index(stack: list[str]) -> bool:
    """Whether the open square bracket follows a name, so that it is not that of ``[attr]``."""
    if "_LSQB" not in stack:
        return False
    before = stack[len(stack) - 2 - stack[::-1].index("_LSQB")]
    return before in ("", "NAME", "QUOTED")


def _expected(accepted: set[str], stack: list[str]) -> str:
    """The accepted tokens as a message lists them."""
    words = {token: word for token, word in _WORDS.items() if token in accepted}
    parts: list[str] = []
    if "$END" in accepted:
        return words["$END"]
    if _in_index(stack):
        return "an index: [i], [2..], [i-1], [1], [last] or, in a function, [..i-1]"
    if _in_structure(stack) and len(words) > 1:
        # Infix operators are accepted nearly everywhere, and seldom what is missing.
        for token in ("AND", "OR", "_LPAR"):
            words.pop(token, None)
    if _in_structure(stack):
        if "SEQ" in accepted:
            parts.append("an item (a type and a variable name, or a nested SEQ, AND or OR)")
        elif "NAME" in accepted:
            parts.append("a variable name after the type")
    elif "NOT" in accepted:
        parts.append("a condition such as a.price < b.price")
        words = {}
    elif "AGGREGATE" in accepted and "AGG" in stack:
        parts.append("an aggregate such as COUNT or SUM(a.price)")
        words = {}
    elif "NUMBER" in accepted:
        value = "a value such as a.price, 5 or 'text'"
        if "RETURN" in stack:
            value = "a variable, or a value such as a.price or sum(b[].price)"
        parts.append("a number" if "WITHIN" in stack else value)
        words = {}
    elif "NAME" in accepted:
        if "WITHIN" in stack:
            parts.append("a time unit (such as seconds, minutes or units)")
        elif stack[-1:] == ["STRATEGY"]:
            parts.append(f"a strategy ({', '.join(STRATEGIES)})")
        elif stack[-1:] == ["ORDER_BY"]:
            parts.append(" or ".join(ORDERS))
        elif stack[-1:] == ["OUTPUT"]:
            parts.append(" or ".join(OUTPUTS))
        elif stack[-1:] in (["_DOT"], ["_LSQB"], ["GROUP_BY"]) or "STRATEGY" in stack:
            parts.append("the name of an attribute")
        elif "RETURN" in stack:
            parts.append("AS and the name of the column")
        else:
            parts.append("a name")
    if "COMPARE" in accepted and accepted & {"WITHIN", "AND"}:
        # A boolean may stand by itself, but a comparison is what most often is missing.
        compare = words.pop("COMPARE")
        words = words if _is_compared(stack) else {"COMPARE": compare}
    parts.extend(words.values())
    if not parts:
        return "something else"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _is_compared(stack: list[str]) -> bool:
    """Whether the last value is a side of a comparison already."""
    begins = ("WHERE", "AND", "OR", "NOT", "_LPAR", "_LBRACE", "_SEMICOLON")
    last = next((its for its in reversed(stack) if its in (*begins, "COMPARE")), "")
    return last == "COMPARE"


def _hint(text: str, span: Span, kind: str, accepted: set[str], stack: list[str]) -> str:
    """A suggestion of what was meant, or nothing."""
    found, before = text[span.start : span.end], text[: span.start].rstrip()
    in_structure = _in_structure(stack)
    if not stack and found.upper() in ("SELECT", "FROM", "MATCH_RECOGNIZE"):
        return "; this is not SQL: PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 minutes"
    if found in ("'", '"'):
        return f"; the quote {found} is not closed"
    if found in ("&", "|"):
        return f"; write {'AND' if found == '&' else 'OR'}"
    if found in ("·", "…") or text[span.start : span.start + 3] == "...":
        return "; write out the parts that the dots stand for"
    if found == "%" and text[span.end :].lstrip()[:1] == "-":
        return "; modulo of a negative number takes brackets, as in a.x % (-2)"
    if before.endswith("=") and found in ("<", ">"):
        return f"; did you mean '{found}='?"
    if before.endswith('"') and "_DOT" in accepted:
        return "; texts take single quotes, names take double quotes"
    if kind in _CLAUSES:
        following = _CLAUSES[_CLAUSES.index(kind) + 1 :]
        if later := next((clause for clause in following if clause in stack), ""):
            return f"; {_WORDS[kind]} comes before {_WORDS[later]}: {_ORDER}"
    if found.upper() == "RETURN" and "WITHIN" in accepted:
        return f"; RETURN comes after WITHIN: {_ORDER} RETURN …"
    if found.upper() in ("GROUP", "GROUPBY") and accepted & {"WITHIN", "$END"}:
        return "; write GROUP BY symbol AGG COUNT before WITHIN, with an attribute for symbol"
    if found.upper() == "ORDER" and accepted & {"WITHIN", "$END"}:
        return "; write ORDER BY arrival after WHERE"
    if kind == "NAME" or found.upper() in _KEYWORDS:
        usable = [_WORDS.get(word, word) for word in _KEYWORDS if word in accepted]
        if hint := did_you_mean(found.upper(), usable):
            return hint
        meant_as_name = in_structure and text[span.end :].lstrip()[:1] in (",", ")")
        if kind == "AGG" and "NAME" in accepted:  # not yet a keyword in older patterns
            meant_as_name = True
        if found.upper() in _KEYWORDS and (stack[-1:] == ["_DOT"] or meant_as_name):
            return f'; {found} is a keyword; as a name it needs double quotes: "{found}"'
    if kind in ("NUMBER", "TEXT", "_DOT", "MINUS") and in_structure:
        return '; names that are not plain identifiers need double quotes, as in "BRK.B"'
    return ""


def _misspelled_operator(
    text: str, span: Span, kind: str, stack: list[str]
) -> tuple[str, Span] | None:
    """The message for an unknown name before an opening bracket, where an operator belongs."""
    before = _word_before(text, span.start)
    if kind != "_LPAR" or before is None or not _in_structure(stack) or not stack:
        return None
    word, place = before
    listed = f"{', '.join(_OPERATORS[:-1])} or {_OPERATORS[-1]}"
    return (
        f"unknown operator {word!r}; expected {listed}{did_you_mean(word.upper(), _OPERATORS)}",
        place,
    )


def _not_built_yet(
    text: str, span: Span, accepted: set[str], stack: list[str]
) -> tuple[str, Span] | None:
    """The unsupported construct of another paper's language, if it is one, and its span."""
    found = text[span.start : span.end]
    if not stack:
        return None
    if _in_structure(stack) and found in ("*", "^"):
        size = "*" if found == "*" else "5"
        return (
            f"B{found} is ZStream's notation of a group of events; write GROUP(B b, {size}), or "
            'parse with dialect="zstream"',
            span,
        )
    if found.upper() in _OTHER_CLAUSES and accepted & {"WITHIN", "$END"}:
        return f"not supported yet: the clause {found}; leave it out", span
    before = _word_before(text, span.start) if found == "(" else _function_before(text, span, stack)
    if before is not None and {"WHERE", "RETURN"} & set(stack):
        word, place = before
        return (
            f"not supported yet: the function {word}(…); the functions are sum, avg, min, max and count over a "
            "Kleene variable, as in avg(b[].price)",
            place,
        )
    return None


def _function_before(text: str, span: Span, stack: list[str]) -> tuple[str, Span] | None:
    """The name behind WHERE of an open bracket, which is read as a strategy, if it is none."""
    place = stack.index("_LPAR") if "_LPAR" in stack else 0
    if stack[max(place - 2, 0) : place] != ["WHERE", "NAME"]:
        return None
    before = _word_before(text, text.rfind("(", 0, span.start))
    is_strategy = before is not None and before[0].lower().endswith(("_match", "_contiguity"))
    return None if is_strategy else before


def _of_sql(text: str, span: Span, accepted: set[str], stack: list[str]) -> str | None:
    """The equivalent of an SQL comparison after a value."""
    if "WHERE" not in stack or "COMPARE" not in accepted:
        return None
    words = text[span.start : span.start + _NEARBY].upper().split()
    negated = words[:1] == ["NOT"]
    word = re.match(r"[A-Z]*", words[negated] if len(words) > negated else "")
    name = word[0] if word else ""
    nearby = text[max(0, span.start - _NEARBY) : span.start]
    before = re.search(r"""(?:"[^"]+"|[\w.'\[\]])+\s*\Z""", nearby)
    value = before[0].rstrip() if before else "a.x"
    if name in _SQL:
        return f"the language has no {name}; write {_SQL[name][negated].format(x=value)}"
    if name in _SQL_TEXTS:
        return (
            f"the language has no {name}, texts can only be = or !=; precompute an attribute that "
            "marks the events that fit, and compare that"
        )
    if name == "IS":
        return (
            "a missing value satisfies no comparison, so IS NULL cannot be expressed; for IS NOT "
            f"NULL write {value} = {value}"
        )
    return None


def _word_before(text: str, start: int) -> tuple[str, Span] | None:
    """The word before ``start``, and its span."""
    begin = max(0, start - _NEARBY)
    found = re.search(r"([^\W\d]\w*)\s*\Z", text[begin:start])
    return None if found is None else (found[1], Span(begin + found.start(1), begin + found.end(1)))


def instead_of(given: object) -> str:
    """Advice for an object that is not a pattern's text."""
    if isinstance(given, Pattern):
        return "; it is already parsed, use it as it is"
    if isinstance(given, bytes | bytearray):
        return "; decode it: text.decode('utf-8')"
    if isinstance(given, os.PathLike):
        return "; read the file: path.read_text(encoding='utf-8')"
    if hasattr(given, "columns"):
        return "; for a stream from a table use cepbench.EventStream.from_pandas"
    return "; pass a text such as 'PATTERN SEQ(A a, B b) WITHIN 5 minutes'"
