"""Compare every request of the Sonarr and Radarr clients with the published descriptions.

usage: arr_requests.py REQUESTS.jsonl FOLDER

REQUESTS.jsonl is the output of `cargo test --test contract`, FOLDER holds {sonarr,radarr}_v3_openapi.json.
"""

import json
import re
import sys
from pathlib import Path

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012


def plain_schema(node):
    """Convert `nullable` of OpenAPI 3.0 to the null type of JSON Schema."""
    if isinstance(node, list):
        return [plain_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: plain_schema(value) for key, value in node.items()}
    if node.pop("nullable", False) is True:
        if "type" in node:
            node["type"] = [node["type"], "null"]
        if "enum" in node:
            node["enum"] = node["enum"] + [None]
    return node


# The descriptions omit the fields of each command besides its name.
COMMANDS = {
    "MoviesSearch": {"movieIds"},
    "SeasonSearch": {"seriesId", "seasonNumber"},
    "EpisodeSearch": {"episodeIds"},
    "MissingEpisodeSearch": {"seriesId"},
}


class Description:
    def __init__(self, path):
        self.document = plain_schema(json.loads(path.read_text()))
        resource = Resource.from_contents(self.document, default_specification=DRAFT202012)
        self.registry = Registry().with_resource("urn:api", resource)

    def operation(self, method, path):
        """Return the described path with its operation, and the values of its parameters."""
        found = []
        for template, operations in self.document["paths"].items():
            names = re.findall(r"\{(\w+)\}", template)
            pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(template))
            match = re.fullmatch(pattern, path)
            if match and method.lower() in operations:
                found.append((len(names), operations[method.lower()], dict(zip(names, match.groups()))))
        return min(found, key=lambda it: it[0])[1:] if found else None

    def failures(self, schema, value):
        # References within the document are relative to it.
        schema = json.loads(json.dumps(schema).replace('"#/', '"urn:api#/'))
        validator = Draft202012Validator(schema, registry=self.registry, format_checker=FormatChecker())
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]

    def resolved(self, schema):
        reference = schema.get("$ref")
        if reference is None:
            return schema
        node = self.document
        for key in reference.removeprefix("#/").split("/"):
            node = node[key]
        return node


def typed(text, schema):
    """Convert the text of a parameter to the required type, or return it unchanged."""
    types = schema.get("type", "string")
    types = types if isinstance(types, list) else [types]
    if "array" in types:
        return [typed(text, schema.get("items", {}))]
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if "integer" in types and re.fullmatch(r"-?\d+", text):
        return int(text)
    return text


def check(description, request):
    found = description.operation(request["method"], request["path"])
    if found is None:
        return ["no such operation"]
    operation, in_path = found
    described = {(it["in"], it["name"]): it for it in operation.get("parameters", [])}
    sent = [("query", name, value) for name, value in request["query"]]
    sent += [("path", name, value) for name, value in in_path.items()]
    problems = []
    for place, name, value in sent:
        parameter = described.get((place, name))
        if parameter is None:
            problems.append(f"no {place} parameter {name}")
            continue
        schema = parameter.get("schema", {})
        value = typed(value, description.resolved(schema))
        problems += [f"{name} {it}" for it in description.failures(schema, value)]
    given = {(place, name) for place, name, _ in sent}
    problems += [f"{it[1]} is required" for it, how in described.items() if how.get("required") and it not in given]
    body = request["body"]
    if request["path"] == "/api/v3/command" and body is not None:
        own = COMMANDS.get(body.get("name"))
        if own is None or set(body) != own | {"name"}:
            problems.append(f"no such command: {body}")
        body = {"name": body.get("name")}
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None and content is None:
        problems.append("no body is described")
    elif body is not None:
        problems += description.failures(content["schema"], body)
    return problems


def main(requests, folder):
    descriptions = {
        server: Description(Path(folder) / f"{server}_v3_openapi.json") for server in ("sonarr", "radarr")
    }
    lines = Path(requests).read_text().splitlines()
    failed = 0
    for line in lines:
        request = json.loads(line)
        for problem in check(descriptions[request["server"]], request):
            failed += 1
            print(f"{request['server']}: {request['method']} {request['path']}: {problem}", file=sys.stderr)
    if failed or not lines:
        sys.exit(f"{failed} problems in {len(lines)} requests")
    print(f"{len(lines)} requests as described")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
