# Requests to Twilio against an independent mock of its published description.
prism() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    log=$home/log
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return
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
    return "$status"
)
