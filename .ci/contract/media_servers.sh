# Requests to Jellyfin and Plex against independent mocks of their published descriptions, and the simulated Jellyfin with
# the independent client on PyPI.
media_servers() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return
    against_mock jellyfin/openapi.json DIALARR_JELLYFIN_URL media_servers::jellyfin || status=$?
    against_mock plex/openapi.json DIALARR_PLEX_URL media_servers::plex || status=$?
    lacks_pypi "$home" jellyfin-apiclient-python==1.20.2 && return "$status"
    DIALARR_MEDIA_CLIENT="$home/venv/bin/python" cargo test --quiet --test contract media_servers::independent ||
        status=$?
    return "$status"
)
