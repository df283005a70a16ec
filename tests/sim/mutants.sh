#!/bin/sh
# Switches off one guard at a time in a copy of the sources and tells which tests notice.
# tests/sim/mutants.sh [name ...]     SIM_SEEDS decides how many schedules each mutant has to survive.
set -u
root=$(git rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export SIM_SEEDS="${SIM_SEEDS:-200}" RUST_BACKTRACE=0
wanted=" $* "

# mutant NAME FILE PERL-EXPRESSION: the expression changes the file, which is taken as one string.
mutant() {
    case "$wanted" in "  " | *" $1 "*) ;; *) return ;; esac
    rm -rf "$copy/tree" && mkdir "$copy/tree"
    (cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$copy/tree")
    cd "$copy/tree" || exit 1
    perl -0pi -e "$3" "$2"
    if cmp -s "$2" "$root/$2"; then
        echo "$1: the patch does not apply"
        return
    fi
    if ! cargo test --no-run --test it --test sim >"$copy/build" 2>&1; then
        echo "$1: does not build"
        grep -m 3 -A 5 '^error' "$copy/build"
        return
    fi
    {
        cargo test --test it -- replay confirmation
        cargo test --test sim -- schedules
    } >"$copy/tests" 2>&1
    failed=$(grep -E '^test [a-z_:]+ \.\.\. FAILED' "$copy/tests" | sed 's/^test //; s/ \.\.\. FAILED//' | tr '\n' ' ')
    rules=$(grep -oE '^  (I[0-9]+|T[0-9]) ' "$copy/tests" | sort | uniq -c | tr -s ' \n' ' ')
    if [ -z "$failed" ]; then echo "$1: SURVIVED"; else echo "$1: caught by $failed($rules)"; fi
}

mutant dedup migrations/*/up.sql 's/  UNIQUE \(channel, external_id\),\n//'
mutant claim src/store/pending.rs 's/diesel::delete\(open\)\.returning\(pending_actions::tool_call_id\)\.get_result\(conn\)/open.select(pending_actions::tool_call_id).first(conn)/'
mutant settle_write src/engine/calling.rs 's/\(Tier::Read, _\) => CallState::Created/(Tier::Read | Tier::Write, _) => CallState::Created/'
mutant settle_deletion src/tools/removal.rs 's/Ok\(None\) => Settled::Done\(deleted\(item, item.fingerprint.size_bytes\)\)/Ok(None) => Settled::NotDone/'
mutant fence src/tools/removal.rs 's/!same\(&item.fingerprint, &current\)/false/'
mutant boot_unknown src/store/boot.rs 's/outbox::state\.eq\("unknown"\), outbox::unknown_at\.eq\(ms\(now\)\)/outbox::state.eq("queued"), outbox::unknown_at.eq(ms(now))/'
mutant order src/store/outbox.rs 's/(if last_user\.replace\(user\) == Some\(user\)) \{/$1 && false {/'
mutant look_first src/store/outbox.rs 's/outbox::state\.eq\("unknown"\),\n(\s+)outbox::looks\.eq\(0\)/outbox::state.eq("queued"),\n$1outbox::looks.eq(0)/'
mutant one_look src/store/outbox.rs 's/\[i64; 2\] = \[15_000, 75_000\]/[i64; 1] = [15_000]/'
mutant look_counts_once src/store/outbox.rs 's/\.and\(outbox::looks\.eq\(looks\)\);/.and(outbox::looks.ge(0));\n    let _ = looks;/'
mutant armed src/conversation/route.rs 's/question\.armed_at\.is_some_and\(\|armed\| event\.received_at > armed\)/true/'
mutant armed_in_claim src/store/pending.rs 's/pending_actions::armed_at\.is_not_null\(\)\.and\(pending_actions::expires_at\.gt\(ms\(now\)\)\)/pending_actions::id.gt(0)/'
mutant expiry src/store/pending.rs 's/if over > 0 \{ close/if over > i64::MAX - 1 { close/; s/\.and\(pending_actions::expires_at\.gt\(ms\(now\)\)\)//'
mutant way src/conversation/route.rs 's/Via::Fallback \| Via::Recovery => false/Via::Fallback | Via::Recovery => true/'
mutant disturbed src/conversation/route.rs 's/direct && !question\.disturbed/direct/'
mutant no_behind src/conversation/route.rs 's/consent::Answer::Yes if question\.denied_since => Route::Deny,\n//'
mutant rights src/tools/approval.rs 's/part_of_claim && user\.status == Status::Active && user\.rights\.may_delete\(\)/part_of_claim/'
mutant opt_out_at_once src/engine/admission.rs 's/route::opts_out\(received\.channel, &received\.body\)/false/'
mutant opt_out_at_sending src/store/outbox.rs 's/if opted_out\.is_some\(\)/if opted_out.is_some() && false/'
mutant one_task src/engine/scheduler.rs 's/task\.bell\.notify_one\(\);\n\s+return false;/task.bell.notify_one();\n            return true;/'
mutant cursor_first src/app.rs 's/(    for text in &reading\.texts \{)/    inbox.admitted(&reading).await?;\n$1/'
mutant overlap src/messaging/recovery.rs 's/cursor - OVERLAP/cursor + TOO_YOUNG - TOO_YOUNG/; s/const OVERLAP/const _OVERLAP/'
mutant half_calls src/engine/asking.rs 's/filter\(\|_\| whole\)/filter(|_| whole || true)/'
