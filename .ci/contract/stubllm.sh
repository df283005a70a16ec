# A turn with PyPI's stubllm as the model: a server whose streams are malformed.
stubllm() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    lacks_pypi "$folder" stubllm==0.1.5 && return
    .ci/with_server DIALARR_STUBLLM_URL "$folder/venv/bin/stubllm serve --host 127.0.0.1 --port \$PORT \
        --fixture-file .ci/contract/stubllm_fixtures.yaml" \
        cargo test --quiet --test contract stubllm
)
