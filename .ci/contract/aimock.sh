# A conversation with npm's aimock as the model.
aimock() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    lacks_npm "$folder" @copilotkit/aimock@1.43.0 && return
    # Small chunks cut names and arguments of calls in the middle.
    .ci/with_server DIALARR_AIMOCK_URL "$folder/node_modules/.bin/llmock --host 127.0.0.1 --port \$PORT \
        --fixtures .ci/contract/aimock_fixtures.json --strict --chunk-size 5" \
        cargo test --quiet --test contract aimock
)
