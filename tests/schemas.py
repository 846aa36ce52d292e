"""The part of JSON Schema that the schema of the command line uses."""

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_WORDS = {"type", "enum", "anyOf", "properties", "required", "additionalProperties", "items"}


def conforms(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value, as read from JSON, conforms to a schema."""
    assert schema.keys() <= _WORDS
    if "anyOf" in schema:
        return any(conforms(value, option) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "type" not in schema:
        return True
    if not isinstance(value, _TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return False
    if isinstance(value, list):
        return all(conforms(entry, schema.get("items", {})) for entry in value)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            conforms(entry, known[name]) if name in known else others is not False and conforms(entry, others)
            for name, entry in value.items()
        )
    return True
