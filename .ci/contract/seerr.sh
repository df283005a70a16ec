# Requests to Seerr against an independent mock of its published description, and the simulated Seerr with the independent
# client on PyPI.
seerr() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return "$status"
    against_mock seerr/openapi.json DIALARR_SEERR_URL seerr::description || status=$?
    lacks_pypi "$home" seerr==0.2.0 && return "$status"
    DIALARR_SEERR_CLIENT="$home/venv/bin/python" cargo test --quiet --test contract seerr::independent || status=$?
    return "$status"
)
