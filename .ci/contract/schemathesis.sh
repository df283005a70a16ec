# The API against its own description, by a tool that generates requests from it: no server error, and no response that
# is not described. The stream is excluded, because it does not end.
schemathesis() (
    status=0
    home=$(mktemp -d)
    pid=
    trap '[[ -z $pid ]] || { kill "$pid" && wait "$pid"; } 2> /dev/null || true; rm -rf "$home"' EXIT
    log=$home/log
    lacks_pypi "$home" schemathesis==4.32.5 && return
    # The binary of the tests: `cargo build` would compile the program again without the features of the tests.
    cargo test --quiet --no-run --test contract
    "${CARGO_TARGET_DIR:-target}/debug/dialarr" demo --no-prompt > "$log" 2>&1 &
    pid=$!
    for _ in $(seq 300); do
        link=$(sed -n 's/.*sign in with \(http:[^ ]*\).*/\1/p' "$log")
        [[ -z $link ]] && kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    base=${link%%/sign-in*}
    # Without a URL, the output of the program is more useful than the failure here.
    key=$(make_api_key "$base" "${link##*token=}" "$home/cookies") || key=
    if [[ $key == dlr_* ]]; then
        # Valid by the description, and answered with 422: a reused Idempotency-Key with another text, two filters that
        # cannot be combined, and a limit beyond 32 bits.
        for operation in "POST /api/v1/messages" "GET /api/v1/deliveries" "PATCH /api/v1/users/{id}"; do
            cat << END
[[operations]]
include-path = "${operation#* }"
include-method = "${operation%% *}"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429", "5xx"]
END
        done > "$home/schemathesis.toml"
        # The tool keeps its records in the working directory.
        (cd "$home" && "$home/venv/bin/schemathesis" run "$base/api/v1/openapi.json" \
            --header "Authorization: Bearer $key" --seed 7 --max-examples 60 --max-time 120 \
            --request-timeout 20 --exclude-path-regex '/events$') || status=$?
    else
        cat "$log" >&2
        status=1
    fi
    return "$status"
)

# Signs in with the token of a link and makes a key on its page, as an operator does.
make_api_key() {
    local base=$1 token=$2 cookies=$3 form
    curl -fsS -o /dev/null -c "$cookies" -H "Origin: $base" --data-urlencode "token=$token" "$base/sign-in/link" || return
    form=$(curl -fsS -b "$cookies" "$base/keys" | sed -n 's/.*name="token" value="\([^"]*\)".*/\1/p' | head -n 1)
    curl -fsS -b "$cookies" -H "Origin: $base" --data-urlencode "token=$form" --data-urlencode "name=Check" \
        --data-urlencode "scope=admin" "$base/keys" |
        grep -o 'dlr_[A-Za-z0-9_-]*' | head -n 1
}
