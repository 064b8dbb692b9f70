"""What to tell the user about a text that is not a sentence of the pattern language."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from cepbench.errors import PatternError, PatternSyntaxError, UnsupportedPatternError

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedInput


class Span(NamedTuple):
    """A piece of the text, ``text[start:end]``."""

    start: int
    end: int


#: What each token of the grammar is to a user, in the order in which they are listed.
_WORDS = {
    "PATTERN": "PATTERN",
    "SEQ": "SEQ",
    "WITHIN": "WITHIN",
    "WHERE": "WHERE",
    "AND": "AND",
    "OR": "OR",
    "_COMMA": "a comma",
    "_LPAR": "an opening bracket",
    "_RPAR": "a closing bracket",
    "_DOT": "a dot and an attribute, as in a.price",
    "COMPARE": "a comparison (<, <=, >, >=, =, !=)",
    "$END": "the end of the pattern",
}
_KEYWORDS = ("PATTERN", "SEQ", "AND", "WHERE", "WITHIN", "OR", "NOT")
_KLEENE = "Kleene closure (KL, +, *, a[])"
_NEGATION = "negation (NOT, !, ~)"
_INFIX = "the infix operators ; & |"


def error_at(kind: type[PatternError], message: str, text: str, span: Span) -> PatternError:
    """An error of this kind that shows line, column and the offending text."""
    start = min(span.start, len(text.rstrip()))
    # Counted by splitlines, as the error shows it; the sentinel keeps an empty last line.
    lines = (text[:start] + "x").splitlines()
    rest = (text[start : span.end] + " ").splitlines()[0].rstrip()
    return kind(message, text=text, line=len(lines), column=len(lines[-1]), length=len(rest) or 1)


def syntax_error(text: str, error: UnexpectedInput) -> PatternError:
    """The named error for what lark found: where, what was expected, and the nearest keyword."""
    span, kind = _found(text, error)
    found = text[span.start : span.end]
    state = error.interactive_parser
    accepted = set(state.accepts())
    stack = [getattr(value, "type", "") for value in state.parser_state.value_stack]
    missing = _not_built_yet(text, span, kind, accepted, stack)
    if missing is not None:
        what, place = missing
        message = f"not supported yet: {what}; patterns are SEQ and AND over plain variables"
        return error_at(UnsupportedPatternError, message, text, place)
    shown = "the text ends here" if kind == "$END" else f"unexpected {found!r}"
    message = f"{shown}; expected {_expected(accepted, stack)}"
    hint = _hint(text, span, kind, accepted, stack)
    return error_at(PatternSyntaxError, f"{message}{hint}", text, span)


def _found(text: str, error: UnexpectedInput) -> tuple[Span, str]:
    """The offending piece and its token; an empty token for what no token begins with."""
    token: Token | None = getattr(error, "token", None)
    if token is None:
        start = error.pos_in_stream or 0
        return Span(start, start + 1), ""
    if token.type == "$END":
        return Span(len(text.rstrip()), len(text.rstrip()) + 1), "$END"
    start = token.start_pos or 0
    return Span(start, start + len(token)), token.type


def _expected(accepted: set[str], stack: list[str]) -> str:
    """The accepted tokens in words."""
    parts: list[str] = []
    if "SEQ" in accepted and "NAME" in accepted:
        parts.append("an item (a type and a variable name, or a nested SEQ or AND)")
        accepted = accepted - {"SEQ", "AND"}
    elif "SEQ" in accepted:
        return "SEQ or AND"
    elif "NOT" in accepted:
        parts.append("a condition such as a.price < b.price")
    elif "NUMBER" in accepted:
        window = "WITHIN" in stack
        parts.append("a number" if window else "a value such as a.price, 5 or 'text'")
    elif "NAME" in accepted:
        if "WITHIN" in stack:
            parts.append("a time unit (such as seconds, minutes or units)")
        elif stack[-1:] == ["_DOT"]:
            parts.append("the name of an attribute")
        else:
            parts.append("a variable name after the type")
    words = {token: word for token, word in _WORDS.items() if token in accepted}
    if parts:
        words.pop("_LPAR", None)
    if accepted & {"WITHIN", "AND"}:
        words.pop("COMPARE", None)
    parts.extend(words.values())
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _hint(text: str, span: Span, kind: str, accepted: set[str], stack: list[str]) -> str:
    """What the user probably meant, or nothing."""
    found, before = text[span.start : span.end], text[: span.start].rstrip()
    if found in ("'", '"'):
        return f"; the quote {found} is not closed"
    if found in ("&", "|"):
        return f"; write {'AND' if found == '&' else 'OR'}"
    if before.endswith("=") and found in ("<", ">"):
        return f"; did you mean '{found}='?"
    if before.endswith('"') and "_DOT" in accepted:
        return "; texts stand in single quotes, double quotes are for names"
    if kind == "NAME" or found.upper() in _KEYWORDS:
        usable = [word for word in _KEYWORDS if word in accepted]
        near = difflib.get_close_matches(found.upper(), usable, n=1)
        if near:
            return f"; did you mean {near[0]!r}?"
        name_needed = "WHERE" not in stack or stack[-1:] == ["_DOT"]
        if found.upper() in _KEYWORDS and "NAME" in accepted and name_needed:
            return f'; {found} is a keyword, as a name it needs double quotes: "{found}"'
    in_structure = not {"WHERE", "WITHIN"} & set(stack)
    if kind in ("NUMBER", "TEXT", "_DOT", "MINUS") and "NAME" in accepted and in_structure:
        return '; what is no plain name stands in double quotes, as "BRK.B" does'
    if not kind and found.isalpha() and "NAME" in accepted:
        return "; names with other than A-Z, a-z, 0-9 and _ stand in double quotes"
    return ""


def _not_built_yet(
    text: str, span: Span, kind: str, accepted: set[str], stack: list[str]
) -> tuple[str, Span] | None:
    """What of the papers' languages this is that cannot be read yet, and where it stands."""
    found = text[span.start : span.end]
    word = found.upper()
    before = re.search(r"([A-Za-z_]\w*)\s*\Z", text[: span.start])
    after = text[span.end :].lstrip()
    if not stack:
        return None
    if word == "STRATEGY" and "WITHIN" in accepted:
        return "the STRATEGY clause", span
    if not {"WHERE", "WITHIN"} & set(stack):
        if "SEQ" in accepted and word in ("NOT", "!", "~"):
            return _NEGATION, span
        if "SEQ" in accepted and word == "OR":
            return "the operator OR", span
        if "SEQ" in accepted and word == "KL" and after.startswith("("):
            return _KLEENE, span
        if kind == "_LPAR" and before is not None and before[1].upper() == "KL":
            return _KLEENE, Span(*before.span(1))
        if found in ("+", "*", "["):
            return _KLEENE, span
        if found in (";", "&", "|"):
            return _INFIX, span
        head = re.split(r"(?i)\b(?:where|within)\b", text[span.start :])[0]
        infix = re.search(r"[;&|]", head)
        if infix is not None and stack[-1:] == ["PATTERN"]:
            return _INFIX, Span(span.start + infix.start(), span.start + infix.end())
        return None
    if found == "[":
        return "an index or an attribute in square brackets", span
    if kind == "_LPAR" and before is not None and "_DOT" in accepted:
        name = before[1]
        what = "the SASE+ form of WHERE" if name.lower().startswith("skip") else f"{name}(…)"
        return what, Span(*before.span(1))
    return None
