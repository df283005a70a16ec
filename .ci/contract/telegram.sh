# The bot with npm's telegram-test-api, an independent server of the Bot API.
telegram() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    lacks_npm "$folder" telegram-test-api@4.2.1 && return
    .ci/with_server DIALARR_TELEGRAM_URL "node .ci/contract/telegram_server.mjs $folder/node_modules \$PORT" \
        cargo test --quiet --test contract telegram
)
