# Requests to Seerr against an independent mock of its published description, and the simulated Seerr with the independent
# client on PyPI.
seerr() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return "$status"
    # The mock leaves out the base path of the description.
    python3 - "$DIALARR_SHARED/data/seerr/openapi.json" "$home/seerr.json" << 'END'
import json
import sys

with open(sys.argv[1]) as file:
    description = json.load(file)
description["paths"] = {"/api/v1" + path: item for path, item in description["paths"].items()}
with open(sys.argv[2], "w") as file:
    json.dump(description, file)
END
    against_mock "$(realpath --relative-to "$DIALARR_SHARED/data" "$home/seerr.json")" DIALARR_SEERR_URL \
        seerr::description || status=$?
    lacks_pypi "$home" seerr==0.2.0 && return "$status"
    DIALARR_SEERR_CLIENT="$home/venv/bin/python" cargo test --quiet --test contract seerr::independent || status=$?
    return "$status"
)
