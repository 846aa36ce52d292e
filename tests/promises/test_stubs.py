"""The stubs of kernels against the C types of their parameters; `mypy.stubtest` compares names and defaults."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIGNATURE = re.compile(r"^( *)(?:def|cpdef)\b[^(\n]*?(\w+)\(((?:[^()]|\([^()]*\))*)\)[^:\n]*:", re.MULTILINE)
CLASS = re.compile(r"^(?:cdef )?class (\w+)", re.MULTILINE)
PARAMETER = re.compile(
    r"(?:const )?(?P<type>unsigned \w+|\w+)(?P<view> ?\[[:, 1]+\])? (?P<name>\w+)(?: not None)?(?:=.*)?"
)
NAMES = {"double": "float64", "float": "float32", "unsigned char": "uint8"}  # of NumPy; "int64_t" is "int64"
WORDS = {"double": "float", "float": "float", "bint": "bool"}
OPEN = {"object", "list", "dict", "frozenset", "integer", "Number", "symbol", "any_symbol", "counter"}  # no one type


def annotations(stub):
    """The annotation of each parameter, by class, function and name."""
    tree = ast.parse(stub.read_text())
    scopes = [("", tree)] + [(node.name, node) for node in tree.body if isinstance(node, ast.ClassDef)]
    return {
        (scope, node.name.strip("_").replace("cinit", "init"), argument.arg): ast.unparse(argument.annotation)
        for scope, body in scopes
        for node in body.body
        if isinstance(node, ast.FunctionDef)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if argument.annotation
    }


def wanted(type_, view):
    """The annotations that a C type allows, None for any."""
    if type_ in OPEN:
        return None
    if view:
        name = NAMES.get(type_, type_.removesuffix("_t"))
        return {f"NDArray[{name}]"} | ({"NDArray[bool_]"} if name == "uint8" else set())
    return {WORDS.get(type_, "int" if re.search(r"int|Py_ssize_t|size_t|long|unsigned", type_) else type_)}


def compared(text, stub):
    """Of each parameter with a C type that the stub has: where, the annotation, and those that the type allows."""
    annotated = annotations(stub)
    for match in SIGNATURE.finditer(text):
        indent, function, parameters = match.groups()
        scope = ["", *CLASS.findall(text[: match.start()])][-1] if indent else ""
        for part in re.split(r",\s*(?![^\[]*\])", parameters):
            typed = PARAMETER.fullmatch(" ".join(part.split()))
            key = scope, function.strip("_").replace("cinit", "init"), typed and typed["name"]
            if typed and key in annotated and (allowed := wanted(typed["type"], typed["view"])):
                yield ".".join(key), annotated[key].replace("np.", "").removesuffix(" | None"), allowed


def wrong(text, stub):
    return [place for place, annotation, allowed in compared(text, stub) if annotation not in allowed]


@pytest.mark.parametrize("source", sorted(ROOT.glob("src/*/*.pyx")), ids=lambda path: path.stem)
def test_stubs_have_the_types_of_kernels(source):
    assert wrong(source.read_text(), ROOT / "dpfast" / "_kernels" / f"{source.stem}.pyi") == []


def test_most_parameters_are_compared_and_other_types_are_found():
    stub = ROOT / "dpfast" / "_kernels" / "_levels.pyi"
    text = (ROOT / "src" / "levels" / "_levels.pyx").read_text()
    assert len(list(compared(text, stub))) > 60
    for type_, other in (("int64_t[::1] out", "int32_t[::1] out"), ("bint exact", "double exact")):
        assert wrong(text.replace(type_, other), stub) != []
