#!/usr/bin/env python3
"""Validates JSON on standard input: validate.py docs/schema/check.json < output.json

A schema may refer to one beside it ({"$ref": "verdict.json"}); those are put in place here, so
that no version of the validator looks for them elsewhere.
"""
import json
import os
import sys

import jsonschema


def resolved(schema, folder):
    if isinstance(schema, list):
        return [resolved(item, folder) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) == {"$ref"}:
        return load(os.path.join(folder, schema["$ref"]))
    return {key: resolved(value, folder) for key, value in schema.items()}


def load(path):
    with open(path, encoding="utf-8") as file:
        return resolved(json.load(file), os.path.dirname(path))


def main():
    schema = load(sys.argv[1])
    jsonschema.Draft202012Validator.check_schema(schema)
    try:
        document = json.load(sys.stdin)
        jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    except ValueError as problem:
        sys.exit(f"{sys.argv[1]}: not JSON: {problem}")
    except jsonschema.ValidationError as problem:
        sys.exit(f"{sys.argv[1]}: at {problem.json_path}: {problem.message}")


main()
