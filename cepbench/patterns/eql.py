"""Sequences of Elastic's EQL, and Sigma's temporal correlations, as text of the pattern language.

Sources: Elasticsearch's EQL syntax reference; the correlation rules of Sigma.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cepbench.errors import PatternError, PatternSyntaxError, UnsupportedPatternError
from cepbench.patterns.diagnosis import Span, error_at
from cepbench.patterns.model import Constant, quoted_unless_plain
from cepbench.patterns.pattern_text import nodes_of, span_of, tokens_of

if TYPE_CHECKING:
    from lark import Lark, Token

    from cepbench.patterns.pattern_text import Node

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

#: What has no exact counterpart, by its first words, and what comes nearest.
_REFUSED = {
    r"\|": "a pipe takes some of the matches; take rows of the result",
    r"sample\b": "a sample has no order and no window; write AND(…) WITHIN … in the pattern language",
    r"\?[\w`]": "an optional field groups missing values too; a missing value equals none, leave out ?",
    r":|like~?\s|regex~?\s|in~|~": "it compares texts by case or wildcards; make it an attribute of the stream",
    r"\(": "a function; make its value an attribute of the stream",
}


def eql_text(text: str) -> str:
    """A sequence of EQL in the pattern language: all its matches, in the order of arrival.

    Raises
    ------
    PatternSyntaxError
        If it is no sequence of EQL, or has no maxspan.
    UnsupportedPatternError
        For what has no exact counterpart; the message names what comes nearest.
    """
    return _EQL(text).pattern()


@functools.cache
def _grammar() -> Lark:
    from lark import Lark

    folder = importlib.resources.files("cepbench.patterns")
    return Lark(
        folder.joinpath("eql.lark").read_text("utf-8"),
        parser="lalr", lexer="contextual", keep_all_tokens=False,
    )  # fmt: skip


class _EQL:
    """A query that is being read."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _fail(self, kind: type[PatternError], message: str, place: Span) -> NoReturn:
        raise error_at(kind, message, self._text, place) from None

    def _tree(self) -> Node:
        from lark.exceptions import UnexpectedInput

        try:
            return _grammar().parse(self._text)
        except UnexpectedInput as error:
            start: Any = error.pos_in_stream
            if start is None or start < 0:
                start = len(self._text)
            for word, advice in _REFUSED.items():
                found = re.compile(word, re.IGNORECASE).match(self._text, start)
                if found:
                    self._fail(UnsupportedPatternError, advice, Span(start, found.end()))
            message = "expected sequence by … with maxspan=… [category where condition] … here"
            self._fail(PatternSyntaxError, message, Span(start, start + 1))

    def pattern(self) -> str:
        """The text in the pattern language."""
        tree = self._tree()
        parts = nodes_of(tree)
        spans = [part for part in parts if part.data == "span"]
        if len(spans) != 1:
            self._fail(
                PatternSyntaxError,
                "pending sequences would be kept for ever; add one with maxspan=1h after sequence",
                Span(0, len(self._text)) if not spans else span_of(spans[1]),
            )
        number, unit = re.fullmatch(r"(\d+)(\w+)", _last(spans[0])).groups()  # type: ignore[union-attr]
        shared = [field for part in parts if part.data == "by" for field in self._fields(part)]
        ends = [part for part in parts if part.data == "until"]
        items: list[str] = []
        conditions: list[str] = []
        keys: list[tuple[str, bool, list[str]]] = []
        events = [part for part in parts if part.data == "item"]
        for place, item in enumerate(events):
            inner = nodes_of(item)
            is_missing = any(token.type == "MISSING" for token in tokens_of(item))
            runs = [_last(part) for part in inner if part.data == "runs"]
            if is_missing and runs:
                self._fail(PatternSyntaxError, "a missing event has no runs", span_of(item))
            if len(runs) > 1 or not all(re.fullmatch("0*[1-9][0-9]?|0*100", its) for its in runs):
                self._fail(PatternSyntaxError, "runs is 1 to 100, once", span_of(item))
            for repeated in range(int(runs[0]) if runs else 1):
                if ends and not is_missing and not all(negated for _, negated, _ in keys):
                    # No event of UNTIL stands anywhere between the first and the last one.
                    self._add(
                        f"u{place}_{repeated}", ends[0], shared, items, conditions, keys, True
                    )
                self._add(f"e{place}_{repeated}", item, shared, items, conditions, keys, is_missing)
        if len({len(fields) for _, _, fields in keys}) > 1:
            self._fail(
                PatternSyntaxError,
                "each item, and until, has as many fields after by",
                span_of(tree),
            )
        positive = [(name, fields) for name, negated, fields in keys if not negated]
        for name, _, fields in keys:
            for one, other in zip(positive[0][1] if positive else (), fields, strict=True):
                if name != positive[0][0]:
                    conditions.append(f"{positive[0][0]}.{one} = {name}.{other}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        window = f"{number} {_UNITS[unit]}"
        return f"PATTERN SEQ({', '.join(items)}){where} ORDER BY arrival WITHIN {window}"

    def _add(
        self,
        name: str,
        part: Node,
        shared: Sequence[str],
        items: list[str],
        conditions: list[str],
        keys: list[tuple[str, bool, list[str]]],
        negated: bool,
    ) -> None:
        event, *rest = nodes_of(part)
        own = [field for each in rest if each.data == "by" for field in self._fields(each)]
        category = tokens_of(event)[0]
        kind = _text(category) if category.type == "TEXT" else quoted_unless_plain(str(category))
        if category.type == "ANY":
            kind = "ANY"
        elif category.type == "TEXT":
            kind = quoted_unless_plain(kind)
        items.append(f"NOT({kind} {name})" if negated else f"{kind} {name}")
        condition = [each for each in event.children if each is not category][-1]
        if getattr(condition, "type", "") != "TRUE":
            conditions.append(f"({self._condition(condition, name)})")
        keys.append((name, negated, [*shared, *own]))

    def _fields(self, part: Node) -> Iterator[str]:
        for field in nodes_of(part):
            yield _name(tokens_of(field)[0])

    def _condition(self, tree: Any, name: str) -> str:
        if not hasattr(tree, "data"):
            self._fail(PatternSyntaxError, "true stands alone after where", span_of(tree))
        match tree.data:
            case "either" | "both":
                word = " OR " if tree.data == "either" else " AND "
                parts = [
                    each for each in tree.children if getattr(each, "type", "") not in ("OR", "AND")
                ]
                return word.join(f"({self._condition(each, name)})" for each in parts)
            case "negation":
                return f"NOT ({self._condition(tree.children[-1], name)})"
            case "membership":
                value, *listed = nodes_of(tree)
                its = self._value(value, name)
                equal = " OR ".join(f"{its} = {self._constant(each)}" for each in listed)
                is_negated = any(token.type == "NOT" for token in tokens_of(tree))
                return f"NOT ({equal})" if is_negated else equal
        left, right = nodes_of(tree)
        operator = str(tokens_of(tree)[0])
        if any(
            token.type == "NULL"
            for side in (left, right)
            for node in nodes_of(side)
            for token in tokens_of(node)
        ):
            if operator != "!=" or nodes_of(left)[0].data != "field":
                self._fail(
                    UnsupportedPatternError,
                    "a missing value satisfies no comparison; x != null is read, and mark the others by an "
                    "attribute",
                    span_of(tree),
                )
            known = self._value(left, name)
            return f"{known} = {known}"
        operator = {"==": "="}.get(operator, operator)
        return f"{self._value(left, name)} {operator} {self._value(right, name)}"

    def _value(self, tree: Node, name: str) -> str:
        (inner,) = nodes_of(tree)
        if inner.data == "field":
            return f"{name}.{_name(tokens_of(inner)[0])}"
        return self._constant(inner)

    def _constant(self, tree: Node) -> str:
        (token,) = tokens_of(tree)
        if token.type == "NULL":
            self._fail(UnsupportedPatternError, "null in a list; leave it out", span_of(tree))
        return str(Constant(_text(token))) if token.type == "TEXT" else str(token).lower()


def _last(tree: Node) -> str:
    return str(tokens_of(tree)[-1])


def _text(token: Token) -> str:
    return re.sub(r"\\(.)", r"\1", str(token)[1:-1])


def _name(token: Token) -> str:
    written = str(token)[1:-1] if token.type == "QUOTED" else str(token)
    return quoted_unless_plain(written)


def sigma_text(text: str) -> str:
    """A temporal correlation of Sigma in the pattern language, over events whose type is a rule's name."""
    import yaml  # type: ignore[import-untyped]  # it is read by nothing else

    try:
        documents = [its for its in yaml.safe_load_all(text) if isinstance(its, dict)]
        places = dict(_places(yaml.compose_all(text, yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise PatternSyntaxError(f"this is no YAML: {error}") from None

    def fail(kind: type[PatternError], message: str, key: str) -> NoReturn:
        place = places.get(key) or places.get("correlation") or Span(0, len(text))
        raise error_at(kind, message, text, place)

    found = [its["correlation"] for its in documents if isinstance(its.get("correlation"), dict)]
    if len(found) != 1:
        fail(
            PatternSyntaxError,
            f"{len(found)} correlations; give one: correlation with type, rules, group-by and timespan",
            "correlation",
        )
    if any("detection" in its for its in documents):
        fail(
            UnsupportedPatternError,
            "detection: a rule is read by its name only, which is the type of its events; leave the rules "
            "out, and give the events that they find these types",
            "detection",
        )
    (its,) = found
    operators = {"temporal_ordered": "SEQ", "temporal": "AND"}
    if str(its.get("type")) not in operators:
        fail(
            UnsupportedPatternError,
            f"type: {its.get('type')}; temporal_ordered and temporal are read, and counts are AGG COUNT of a "
            "pattern",
            "type",
        )
    for key in sorted(map(str, set(its) - {"type", "rules", "group-by", "timespan", "generate"})):
        fail(
            UnsupportedPatternError,
            f"{key}: it has no counterpart; rename fields in the stream, and filter the matches",
            key,
        )
    rules, span = its.get("rules"), re.fullmatch(r"(\d+)([smhd])", str(its.get("timespan", "")))
    if not rules or not _are_texts(rules):
        fail(PatternSyntaxError, "rules: a list of names of rules", "rules")
    if span is None:
        fail(
            PatternSyntaxError,
            "timespan bounds what is kept: a number with s, m, h or d, as 5m",
            "timespan",
        )
    group_by = its.get("group-by") or []
    keys = [group_by] if isinstance(group_by, str) else group_by
    if not _are_texts(keys):
        fail(
            PatternSyntaxError,
            "group-by: a list of names of fields; a name that is a number takes quotes",
            "group-by",
        )
    items = (f"{quoted_unless_plain(rule)} e{at}" for at, rule in enumerate(rules))
    where = f" WHERE [{', '.join(map(quoted_unless_plain, keys))}]" if keys else ""
    return (
        f"PATTERN {operators[its['type']]}({', '.join(items)}){where} ORDER BY arrival WITHIN "
        f"{span[1]} {_UNITS[span[2]]}"
    )


def _places(documents: Iterable[Any]) -> Iterator[tuple[str, Span]]:
    """Where the keys of the documents, and of their correlations, stand; those of correlations last."""
    for document in documents:
        keys = _keys(document)
        keys += [each for key, value in keys if key.value == "correlation" for each in _keys(value)]
        for key, value in keys:
            yield str(key.value), Span(key.start_mark.index, value.end_mark.index)


def _keys(node: Any) -> list[tuple[Any, Any]]:
    """The keys of a mapping with their values, as nodes."""
    return list(node.value) if getattr(node, "id", "") == "mapping" else []


def _are_texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) for each in given)
