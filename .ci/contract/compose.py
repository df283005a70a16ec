"""Check the compose files and litestream.yml: they match Dialarr, and publish ports only on loopback."""

import sys

import yaml

compose, litestream, minimal = (yaml.safe_load(open(path)) for path in sys.argv[1:4])
services = compose["services"]
dialarr = services["dialarr"]

with open(".env.example") as example:
    known = {line.split("=")[0] for line in example if "=" in line and not line.startswith("#")}
[alone] = minimal["services"].values()
unknown = (set(dialarr["environment"]) | set(alone["environment"])) - known - {"PUID", "PGID"}
assert not unknown, f"not in .env.example: {unknown}"

outside = {name for name, service in services.items() if "outside" in service.get("networks", [])}
assert services["tunnel"]["networks"] == ["outside"], "the tunnel reaches the house"
assert outside == {"tunnel", "dialarr"}, f"the tunnel reaches {outside}"
ports = dialarr["ports"] + alone["ports"]
assert all(port.startswith("127.0.0.1:") for port in ports), "a port is open to the network"

[database] = litestream["dbs"]
assert database["path"] == dialarr["environment"]["DATABASE_URL"], "Litestream copies another file"
owner = f"{dialarr['environment']['PUID']}:{dialarr['environment']['PGID']}"
assert services["litestream"]["user"] == owner, "Litestream writes as another user"
