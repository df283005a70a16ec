#!/usr/bin/env bash
# Installs, upgrades, removes and purges the package in a root file system: deb_root.sh ROOT OLD_DATABASE PACKAGE NEWER
set -euo pipefail
root=$1 old_database=$2 package=$3 newer=$4
data=$root/var/lib/dialarr

service=
trap '[[ -z $service ]] || kill "$service" 2>/dev/null || true' EXIT

fail() {
    echo "the Debian package: $*" >&2
    exit 1
}

in_root() {
    chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"
}

dpkg_in_root() {
    in_root dpkg "$@" >"$root/tmp/dpkg.log" 2>&1 || { cat "$root/tmp/dpkg.log" >&2; fail "dpkg $*"; }
}

# Value of a line of the installed unit.
unit() {
    sed -n "s/^$1=//p" "$root/usr/lib/systemd/system/dialarr.service"
}

# Reads the unit: how to run a command as its user, in its folder, with its environment.
read_unit() {
    run=(chroot --userspec="$(unit User):$(unit Group)" "$root"
        env -i -C "$(unit WorkingDirectory)" PATH=/usr/bin:/bin "$(unit Environment)")
}

as_unit() {
    "${run[@]}" "$@"
}

# Starts the command of the unit, and waits until it is healthy.
start() {
    # shellcheck disable=SC2046  # words of the command
    "${run[@]}" $(unit ExecStart) >"$root/tmp/serve.log" 2>&1 &
    service=$!
    eventually as_unit dialarr health || { cat "$root/tmp/serve.log" >&2; fail "the service is not healthy"; }
}

# Repeats a command for ten seconds until it succeeds.
eventually() {
    for _ in {1..100}; do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    return 1
}

stop() {
    kill -TERM "$service"
    wait "$service" || fail "the service ended with $?"
    service=
}

cp "$package" "$root/tmp/package.deb"
cp "$newer" "$root/tmp/newer.deb"

dpkg_in_root --install /tmp/package.deb
read_unit
[[ $(stat -c %a:%U "$root/etc/dialarr/dialarr.env") == 640:root ]] || fail "mode of the configuration"
[[ $(in_root stat -c %a:%U:%G /var/lib/dialarr) == 700:dialarr:dialarr ]] || fail "mode of the folder"
[[ $(in_root dpkg-query --show --showformat='${Conffiles}' dialarr) == *" /etc/dialarr/dialarr.env "* ]] || fail "conffile"
for file in usr/share/man/man1/dialarr.1.gz usr/share/man/man1/dialarr-demo.1.gz \
    usr/share/bash-completion/completions/dialarr usr/share/zsh/vendor-completions/_dialarr \
    usr/share/fish/vendor_completions.d/dialarr.fish usr/share/doc/dialarr/docs/SETUP.md \
    usr/share/doc/dialarr/copyright usr/share/doc/dialarr/.env.example; do
    [[ -s $root/$file ]] || fail "no $file"
done
in_root test -e /etc/systemd/system/multi-user.target.wants/dialarr.service || fail "the unit is not enabled"
in_root bash -n /usr/share/bash-completion/completions/dialarr
printf 'PORT=18473\nCONSOLE_BIND=127.0.0.1:18474\n' \
    >>"$root/etc/dialarr/dialarr.env"
start
eventually grep "set up Dialarr at http" "$root/tmp/serve.log" || fail "no link to the setup assistant"
as_unit dialarr console-link | grep -q http://127.0.0.1:18474/sign-in/ || fail "no sign-in link"
stop

# A database of the previous version, and an upgrade that keeps a changed configuration.
rm -f "$data"/dialarr.db*
cp "$old_database" "$data/dialarr.db"
in_root chown dialarr:dialarr /var/lib/dialarr/dialarr.db
dpkg_in_root --install /tmp/newer.deb
grep -q PORT=18473 "$root/etc/dialarr/dialarr.env" || fail "the upgrade lost the configuration"
start
compgen -G "$data/dialarr.db.before-*" >/dev/null || fail "no copy of the database from before its migration"
users=$(as_unit dialarr users list)
grep -q Sam <<<"$users" || fail "users of the old database: $users"
stop

dpkg_in_root --remove dialarr
[[ -s $data/dialarr.db && -e $root/etc/dialarr/dialarr.env ]] || fail "removal deleted data"
[[ ! -e $root/usr/bin/dialarr ]] || fail "removal left the program"
dpkg_in_root --purge dialarr
[[ -s $data/dialarr.db ]] || fail "purge deleted the database without being told to"
[[ ! -e $root/etc/dialarr/dialarr.env && ! -L $data/.env ]] || fail "purge left the configuration"

dpkg_in_root --install /tmp/newer.deb
start
as_unit dialarr users list | grep -q Sam || fail "a new installation did not continue with the database"
stop
echo "dialarr dialarr/purge-data boolean true" | in_root debconf-set-selections
dpkg_in_root --purge dialarr
[[ ! -e $data ]] || fail "purge kept the database although it was told to delete it"
