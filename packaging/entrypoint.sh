#!/bin/sh
# Runs dialarr as PUID:PGID, the owner of /config. If it is not started as root, it runs as the current user.
set -eu

if [ "$(id -u)" != 0 ]; then
    exec dialarr "$@"
fi
uid=${PUID:-1000} gid=${PGID:-1000}
case "$uid:$gid" in
    *[!0-9:]* | :* | *:)
        echo "entrypoint: PUID and PGID have to be numbers, not \"$uid\" and \"$gid\"" >&2
        exit 78
        ;;
esac
if [ "$uid" -eq 0 ]; then
    echo "entrypoint: PUID has to be above 0: dialarr does not run as root" >&2
    exit 78
fi
# Health checks are frequent, and the owner is already correct then.
if [ "${1:-}" != health ]; then
    find . -xdev \( ! -uid "$uid" -o ! -gid "$gid" \) -exec chown -h "$uid:$gid" {} + ||
        echo "entrypoint: not everything in $PWD could be given to $uid:$gid" >&2
fi
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs dialarr "$@"
