# Requests to Jellyfin and Plex against independent mocks of their published descriptions; and the simulated Jellyfin, Plex
# and Tautulli with the independent clients on PyPI. The client for Tautulli has the GPL, so it only runs here.
media_servers() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    # The examples are files.
    cargo test --quiet --test contract tautulli:: || status=$?
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return "$status"
    against_mock jellyfin/openapi.json DIALARR_JELLYFIN_URL media_servers::jellyfin || status=$?
    against_mock plex/openapi.json DIALARR_PLEX_URL media_servers::plex || status=$?
    lacks_pypi "$home" jellyfin-apiclient-python==1.20.2 plexapi==4.18.3 && return "$status"
    DIALARR_MEDIA_CLIENT="$home/venv/bin/python" cargo test --quiet --test contract media_servers::independent ||
        status=$?
    # In a folder of its own, because it needs an older plexapi.
    mkdir "$home/tautulli"
    lacks_pypi "$home/tautulli" tautulli==4.8.2.2180 && return "$status"
    DIALARR_TAUTULLI_CLIENT="$home/tautulli/venv/bin/python" \
        cargo test --quiet --test contract tautulli::independent || status=$?
    return "$status"
)
