# The console in headless Chromium: signing in, an answer as it comes, a deletion approved, each page inspected for
# accessibility. Its pictures are kept in target/browser.
browser() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if ! npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --fetch-retries 1 --silent \
        playwright-core@1.65.1 axe-core@4.14.1 >/dev/null 2>&1; then
        echo "skipped: npm cannot install playwright-core and axe-core"
        return
    fi
    if ! command -v chromium >/dev/null && ! { apt-get update && apt-get install -y chromium; } >/dev/null 2>&1; then
        echo "skipped: Debian's chromium cannot be installed"
        return
    fi
    DIALARR_NODE_MODULES="$folder/node_modules" CHROMIUM=$(command -v chromium) \
        cargo test --quiet --test browser
)
