"""Texts of workloads: comments, byte-order marks, names of any script."""

import pytest

import cepbench as cep
from cepbench.errors import PatternSyntaxError

QUERY = "PATTERN SEQ(A a', B b) WITHIN 9 units"


@pytest.mark.parametrize(
    "comment",
    [
        "-- my queries\n",
        "# mine\n",
        "// mine\n",
        "/* q0 =\nq1 = PATTERN x */\n",
        "\ufeff",
        "\ufeff# 1\n",
    ],
)
def test_a_text_may_begin_with_a_comment(comment: str) -> None:
    text = f"{comment}q1 = {QUERY}\n-- and 'tis\n/* PATTERN */ q2 = # here\n{QUERY} // end"
    found = cep.Workload.parse(text)
    assert list(found.patterns) == ["q1", "q2"]
    assert found == cep.Workload({"q1": QUERY, "q2": QUERY}) == cep.Workload.parse(str(found))
    assert cep.Workload.names_queries(text) and not cep.Workload.names_queries(comment + QUERY)


def test_comments_in_quotes_are_texts() -> None:
    where = QUERY.replace("WITHIN", "WHERE a'.s = '-- /* no' WITHIN")
    text = f"q1 = {where}\nq2 = {QUERY}"
    assert "-- /* no" in str(cep.Workload.parse(text).patterns["q1"])


def test_something_else_at_the_beginning() -> None:
    with pytest.raises(PatternSyntaxError, match="begins with the name of a query"):
        cep.Workload.parse(f"-- a comment\nand a word q1 = {QUERY}")


def test_names_of_any_script() -> None:
    text = "查询 = PATTERN SEQ(提交 甲, 构建 乙) WHERE 甲.作者 = 乙.作者 GROUP BY 作者 AGG COUNT WITHIN :窗"
    found = cep.Workload.parse(text, {"窗": "9 units"})
    pattern = found.patterns["查询"]
    assert (pattern.names, pattern.types) == (("甲", "乙"), ("提交", "构建"))
    assert pattern.attributes == ("作者",)
    assert cep.Workload.parse(str(found)) == found


@pytest.mark.parametrize(
    "name", ["É", "Δ_1", "हिन्दी", "ภาษาไทย", "الوقت", "e\u0301te", "notwendig", "提交2'"]
)
def test_names_in_patterns(name: str) -> None:
    pattern = cep.parse(f"\ufeffPATTERN SEQ({name} {name}, B b) WHERE b.{name} > 1 WITHIN 5 µs")
    assert pattern.names == (name, "b") and pattern.attributes == (name,)
    assert cep.parse(str(pattern)) == pattern


@pytest.mark.parametrize("never", ["false", "NOT true", "a.x > 1 AND FALSE", "(false OR 1 = 2)"])
def test_where_false(never: str) -> None:
    with pytest.raises(cep.CepbenchError, match="this condition is never true") as refused:
        cep.parse(f"PATTERN SEQ(A a, B b) WHERE {never} WITHIN 5 s")
    assert type(refused.value).__name__ == "UnsatisfiablePatternError"
    either = cep.parse(f"PATTERN SEQ(A a, B b) WHERE a.x > 1 AND NOT ({never}) WITHIN 5 s")
    assert "a.x" in str(either)
