# Our calls to Twilio against an independent mock of its published description.
prism() {
    local home log pid url status=0
    if ! command -v npm > /dev/null; then
        echo "skipped: the mock of Twilio needs npm"
        return
    fi
    home=$(mktemp -d)
    log=$home/log
    if ! npm install --silent --no-fund --no-audit --prefix "$home" @stoplight/prism-cli@5.14.2 > "$log" 2>&1; then
        rm -rf "$home"
        echo "skipped: the mock of Twilio needs the npm registry"
        return
    fi
    node "$home/node_modules/@stoplight/prism-cli/dist/index.js" mock -h 127.0.0.1 -p 0 \
        "$DIALARR_SHARED/data/twilio/twilio_api_v2010.trimmed.json" > "$log" 2>&1 &
    pid=$!
    url=
    for _ in $(seq 300); do
        url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$log" | tail -n 1)
        [[ -z $url ]] && kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    if [[ -n $url ]]; then
        DIALARR_PRISM_URL=$url cargo test --quiet --test contract prism || status=$?
    else
        cat "$log" >&2
        status=1
    fi
    kill "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null || true
    rm -rf "$home"
    return "$status"
}
