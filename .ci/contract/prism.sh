# Requests to Twilio and to a phone with SMS Gateway against independent mocks of their published descriptions.
prism() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    lacks_npm "$home" @stoplight/prism-cli@5.14.2 && return
    against_mock twilio/twilio_api_v2010.trimmed.json DIALARR_PRISM_URL prism || status=$?
    against_mock smsgate/openapi.json DIALARR_SMSGATE_URL smsgate || status=$?
    return "$status"
)

# Runs the tests $3 against a mock of the description $1, whose URL they get as the variable $2.
against_mock() (
    status=0
    log=$home/log.$3
    node "$home/node_modules/@stoplight/prism-cli/dist/index.js" mock -h 127.0.0.1 -p 0 \
        "$DIALARR_SHARED/data/$1" > "$log" 2>&1 &
    pid=$!
    url=
    for _ in $(seq 300); do
        url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$log" | tail -n 1)
        [[ -z $url ]] && kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    if [[ -n $url ]]; then
        env "$2=$url" cargo test --quiet --test contract "$3::" || status=$?
    else
        cat "$log" >&2
        status=1
    fi
    kill "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null || true
    return "$status"
)
