# A conversation with npm's aimock as the model.
aimock() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if ! npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --fetch-retries 1 --silent \
        @copilotkit/aimock@1.43.0 >/dev/null 2>&1; then
        echo "skipped: npm cannot install @copilotkit/aimock"
        return
    fi
    # Small chunks cut names and arguments of calls in the middle.
    .ci/with_server DIALARR_AIMOCK_URL "$folder/node_modules/.bin/llmock --host 127.0.0.1 --port \$PORT \
        --fixtures .ci/contract/aimock_fixtures.json --strict --chunk-size 5" \
        cargo test --quiet --test contract aimock
)
