# A turn with PyPI's stubllm as the model: a server whose streams are wrong.
stubllm() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if ! { python3 -m venv "$folder/python" && "$folder/python/bin/pip" install --quiet stubllm==0.1.5; } \
        >/dev/null 2>&1; then
        echo "skipped: pip cannot install stubllm"
        return
    fi
    .ci/with_server DIALARR_STUBLLM_URL "$folder/python/bin/stubllm serve --host 127.0.0.1 --port \$PORT \
        --fixture-file .ci/contract/stubllm_fixtures.yaml" \
        cargo test --quiet --test contract stubllm
)
