#!/bin/sh
# Switches off single guards and prints tests that detect each one. The script adds a switch for each guard to a
# copy of the sources, which is built once; the variable MUTANT names the guard that is off.
# tests/sim/mutants.sh [name ...]     SIM_SEEDS sets the number of schedules that each mutant has to survive;
# MUTANT_PROFILE=--release builds for a faster simulation.
set -u
root=$(git rev-parse --show-toplevel)
copy="${TMPDIR:-/tmp}/dialarr-mutants"
export SIM_SEEDS="${SIM_SEEDS:-200}" RUST_BACKTRACE=0
names=""
missing=""

# guard NAME FILE PERL-EXPRESSION: the expression applies to the file as one string; OFF is a placeholder for the switch.
guard() {
    expression=$(printf '%s' "$3" | sed "s/OFF/crate::mutant_is(\"$1\")/g")
    perl -0pi -e "$expression" "$copy/$2"
    # Each part of the expression has to match.
    parts=$(printf '%s' "$3" | grep -o OFF | wc -l)
    switches=$(grep -o "mutant_is(\"$1\")" "$copy/$2" | wc -l)
    if [ "$switches" -lt "$parts" ]; then missing="$missing $1"; else names="$names $1"; fi
}

rm -rf "$copy" && mkdir -p "$copy"
(cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$copy")
cat >>"$copy/src/lib.rs" <<'END'

pub fn mutant_is(name: &str) -> bool {
    std::env::var("MUTANT").is_ok_and(|mutant| mutant == name)
}
END

guard dedup src/store/queue/inbound_messages.rs 's/(external_id\.eq)\(&received\.external_id\)/$1(if OFF { format!("{} {}", received.external_id, received.received_at) } else { received.external_id.clone() })/'
guard claim src/store/confirmation/pending_action.rs 's/(diesel::delete\(open\)\.returning\(ChangedPrompt::as_returning\(\)\)\.get_result\(conn\)\.optional\(\)\?)/if OFF { open.select(ChangedPrompt::as_select()).first(conn).optional()? } else { $1 }/'
guard intent src/store/turns/calls.rs 's/tool_calls::state\.eq\(CallPhase::Running\)/tool_calls::state.eq(if OFF { CallPhase::Created } else { CallPhase::Running })/'
guard settle_write src/engine/turns/write_recovery.rs 's/\(EffectLevel::Read, _\) => CallState::Created/(level, _) if level == EffectLevel::Read || OFF => CallState::Created/'
guard settle_deletion src/tools/remove_media.rs 's/(Ok\(None\) => RecoveryOutcome::Done\(deleted)/Ok(None) if OFF => RecoveryOutcome::NotDone,\n            $1/'
guard settle_always src/conversation/turn/mod.rs 's/self\.work_failures > 2/(if OFF { self.resumes } else { self.work_failures }) > 2/'
guard starts_together src/store/boot.rs 's/(elapsed >= COUNTED_START_INTERVAL)/OFF || $1/'
guard noes src/engine/routing/turn_start.rs 's/(filter\(\|event\| )(is_yes_or_no\(event\)\))/$1OFF || $2/'
guard quiet_hours src/store/queue/outbox.rs 's/if (let Some\(quiet_end\) = )/if !OFF \&\& $1/'
guard forget_waiting src/store/privacy/erase.rs 's/(notification_rows::suppress_notifications\(conn, user, now\)\?;)/if !OFF { $1 }/'
guard not_done src/engine/turns/deletion.rs 's/(return Ok\(Some\()(ItemOutcome::StillThere)/$1if OFF { ItemOutcome::Unknown } else { $2 }/'
guard progress src/store/turns/progress_message.rs 's/Ok\(running == 0\)/Ok(running == 0 \&\& !OFF)/'
guard lookup_first src/store/queue/lookups.rs 's/lookups_left\.eq\(LOOKUPS_NOT_STARTED\)\)\n/lookups_left.eq(if OFF { 0 } else { LOOKUPS_NOT_STARTED }))\n/'
guard fence src/tools/remove_media.rs 's/if !is_same_title\(/if !OFF \&\& !is_same_title(/'
guard doubt src/arr/mod.rs 's/(self\.failure_class\(\)\.effect == PeerEffect::Unknown)/!OFF \&\& $1/'
guard boot_unknown src/store/boot.rs 's/outbox::state\.eq\(OutboxState::Unknown\)/outbox::state.eq(if OFF { OutboxState::Queued } else { OutboxState::Unknown })/'
guard order src/store/queue/outbox_schedule.rs 's/(if last_user\.replace\(user\) == Some\(user\)) \{/$1 && !OFF {/'
guard look_first src/store/queue/outbox.rs 's/outbox::state\.eq\(OutboxState::Unknown\)(,\n\s+outbox::not_before\.eq\(ms\(now\)\),\n\s+outbox::looks\.eq\(0\))/outbox::state.eq(if OFF { OutboxState::Queued } else { OutboxState::Unknown })$1/'
guard one_look src/store/queue/lookups.rs 's/lookup_count < count\.required\)/lookup_count < count.required \&\& !OFF)/'
guard look_counts_once src/store/queue/lookups.rs 's/outbox::looks\.eq\(count\.earlier\)/outbox::looks.between(if OFF { 0 } else { count.earlier }, if OFF { i64::MAX } else { count.earlier })/'
guard armed src/conversation/routing/open_prompt.rs 's/self\.armed_at\.is_some_and\((.*?event\.received_at > armed)\)/(OFF || self.armed_at.is_some_and($1))/'
guard repeat_armed src/store/confirmation/pending_action.rs 's/row\s*\.armed_at\s*\.zip\(.*?\)\s*\.map\(.*?armed\.max\(accepted\)\)/if OFF { row.armed_at } else { $& }/s; s/prompt\.and\(outbox_rows::accepted_at\.is_not_null\(\)\)/prompt.and(outbox_rows::accepted_at.is_not_null().or(outbox_rows::id.ge(if OFF { 0 } else { i64::MAX })))/'
guard expiry src/store/confirmation/pending_action.rs 's/Some\(at\) (=> close_pending_action\(conn, user, CloseReason::Expired.*?\n\s+)None =>/Some(at) if !OFF $1_ =>/; s/expires_at\.gt\(ms\(now\)\)/expires_at.gt(ms(if OFF { Timestamp::UNIX_EPOCH } else { now }))/'
guard way src/conversation/routing/open_prompt.rs 's/(MessageSource::Fallback \| MessageSource::Recovery) => false/$1 => OFF/'
guard authority src/conversation/routing/verification.rs 's/(Self::Ambiguous \| Self::Unverified) => false/$1 => OFF/'
guard disturbed src/conversation/routing/open_prompt.rs 's/(let is_for_this_prompt = )/$1OFF || /'
guard no_behind src/conversation/routing/route.rs 's/(ConfirmationReply::Yes if prompt\.denied_since)/$1 && !OFF/'
guard start_right src/engine/turns/log/deletion_records.rs 's/(approval::approve_item\(&claimed)/!OFF \&\& $1/'
guard start_cancel src/engine/turns/log/deletion_records.rs 's/(\|\| )(turn_lifecycle::is_cancel_requested)/$1!OFF \&\& $2/'
guard rights src/tools/approval.rs 's/(UserStatus::Active && )user\.rights\.may_delete\(\)/$1(OFF || user.rights.may_delete())/'
guard opt_out_at_once src/engine/inbound/message_storage.rs 's/(Urgency::OptsOut => \{\n)/$1                        if OFF { return Ok(admission); }\n/'
guard opt_out_at_sending src/store/queue/outbox.rs 's/(let is_opted_out =\s+)(row\.is_opted_out\(\))/$1!OFF \&\& $2/'
guard claim_opt_out src/store/queue/queued_claim.rs 's/(&& )(!is_opted_out)/$1(OFF || $2)/'
guard claim_block src/store/queue/queued_claim.rs 's/(status != UserStatus::Blocked)/(OFF || $1)/'
guard claim_order src/store/queue/queued_claim.rs 's/(&& )(!has_open_messages)/$1(OFF || $2)/'
guard claim_synced src/store/database/write_connection.rs 's/\|\| !claimed_messages\.is_empty\(\)/|| (!OFF \&\& !claimed_messages.is_empty())/'
guard history_changes src/store/conversation/history_cache.rs 's/(LogEntry::Event\(event\) if )(changes_history)/$1!OFF \&\& $2/'
guard history_erased src/store/database/write_connection.rs 's/if has_changed_history \{/if has_changed_history \&\& !OFF {/'
guard history_finished src/store/conversation/history_cache.rs 's/(LogEntry::TurnFinished\(turn, loaded_at\) if )(\*loaded_at == cached\.version)/$1(OFF || $2)/'
guard one_task src/engine/inbound/user_tasks.rs 's/(task\.wakeup\.notify_one\(\);\n\s+)return None;/$1return OFF.then(|| task.wakeup.clone());/'
guard cursor_last src/channel_poller.rs 's/(        for message in messages \{)/        if OFF { let (name, mark) = (source.clone(), cursor.clone()); self.db.write(move |conn| source_cursors::store_source_cursor(conn, \&name, \&mark, now)).await?; }\n$1/'
guard known_id src/messaging/smsgate/client.rs 's/(Ok\(Some\(stored\)\) if )(stored\.is_to)/$1OFF || $2/'
guard armed_when_sent src/store/queue/outbox.rs 's/(ConfirmPrompt && )(!channel\.opens_prompts_when_sent\(\))/$1(OFF || $2)/'
guard gap src/messaging/smsgate/inbox.rs 's/(fn is_polled_directly.*?\{\n\s+)(!self\.had_gap)/$1OFF || $2/s'
guard phone_order src/messaging/smsgate/client.rs 's/if self\.must_wait\(message\)/if !OFF \&\& self.must_wait(message)/'
guard stored_twice src/store/queue/inbound_messages.rs 's/if is_repeat\(/if !OFF \&\& is_repeat(/'
guard late_texts src/messaging/smsgate/inbox_mark.rs 's/(self\.total == head\.total)/(OFF || $1)/'
guard third_attempt src/messaging/smsgate/states.rs 's/&& (!is_second_attempt\(sid\))/\&\& (OFF || $1)/'
guard second_program src/store/database/database_lock.rs 's/match self\.file\.try_lock\(\)/match if OFF { Ok(()) } else { self.file.try_lock() }/'
guard overlap src/messaging/twilio/receiving.rs 's/cursor\.read_until - OVERLAP/cursor.read_until - if OFF { SignedDuration::ZERO } else { OVERLAP }/'
guard half_calls src/engine/turns/model_step.rs 's/filter\(\|_\| is_complete\)/filter(|_| is_complete || OFF)/'
guard failed_attempt src/store/turns/model_steps.rs 's/(pub fn abandon_unfinished.*?\{\n)/$1    if OFF { return Ok(()); }\n/s'
guard notice_waits src/store/queue/outbox_schedule.rs 's/if kind == OutboundKind::Notice\n/if !OFF \&\& kind == OutboundKind::Notice\n/'
guard notice_waits_at_sending src/store/queue/outbox.rs 's/if is_notice &&/if !OFF \&\& is_notice \&\&/'
guard block_at_sending src/store/queue/outbox.rs 's/\|\| (row\.status == UserStatus::Blocked)/|| (!OFF \&\& $1)/'
guard opt_word_order src/store/people/addresses.rs 's/(let is_latest = .*?);/let is_latest = user_addresses::opt_word_at.is_null().or(user_addresses::opt_word_at.le(if OFF { ms(Timestamp::MAX) } else { sent_at }));/'
guard admins_order src/conversation/routing/route.rs 's/(\|command\| )(command\.is_permitted)/$1OFF || $2/'
guard strangers_first src/conversation/routing/route.rs 's/(if context\.user\.status == UserStatus::Pending)/$1 \&\& !OFF/'
guard one_answer_a_day src/conversation/people/onboarding.rs 's/(let may_answer =\s+)(newcomer\.answered_at\.is_none_or\(is_old\))/$1(OFF || $2)/'
guard places src/conversation/people/onboarding.rs 's/(if )(!newcomer\.has_slot && room\.taken_slots >= MAX_WAITING_NEWCOMERS)/$1!OFF \&\& $2/'
guard answers_together src/conversation/people/onboarding.rs 's/(&& )(room\.recent_answers < MAX_DAILY_REPLIES)/$1(OFF || $2)/'
guard code_misses src/store/confirmation/approvals.rs 's/if is_code_disabled\(&approval\)/if !OFF \&\& is_code_disabled(&approval)/'
guard code_expiry src/store/confirmation/approvals.rs 's/if approval\.expires_at <= now/if !OFF \&\& approval.expires_at <= now/'
guard wish_asked_for src/tools/request_removal.rs 's/(approval::check_deletion_requested\(.*?\))\?;/if !OFF { $1?; }/s'
guard quota src/tools/approval.rs 's/(let Some\(rate\) = usage\.rate)( else)/$1.filter(|_| !OFF)$2/'
guard quota_counts src/store/library/quotas.rs 's/if usage\.amount == 0 \{/if OFF || usage.amount == 0 {/'
guard audit_first src/engine/turns/log/call_records.rs 's/(audit::record_intent\(conn, &intent, now\)\?;)/if !OFF { $1 }/'
guard audit_deletion src/engine/turns/log/deletion_records.rs 's/(if outcome == ItemStartOutcome::Started) \{/$1 \&\& !OFF {/'
guard rate src/conversation/routing/route.rs 's/if context\.over_limit \{/if context.over_limit \&\& !OFF {/g'
guard pictures src/conversation/routing/route.rs 's/is_blank && context\.over_limit/is_blank \&\& !OFF \&\& context.over_limit/'
guard budget src/store/turns/daily_budget.rs 's/if !budget\.has_room/if !OFF \&\& !budget.has_room/g'
guard paused src/engine/routing/admin_commands.rs 's/(ended_at: None \}\)) = last_pause else/$1 = last_pause.filter(|_| !OFF) else/'
guard reactions_unseen src/store/conversation/history.rs 's/reactions::said_in\.eq\(inbound_events::id\.nullable\(\)\)/reactions::said_in.eq(inbound_events::id.nullable()).and(reactions::id.lt(if OFF { 0 } else { i64::MAX }))/'
guard last_admin src/store/people/users.rs 's/(pub fn is_last_admin.*?\{\n)/$1    if OFF { return Ok(false); }\n/s'
guard unstarted src/store/turns/calls.rs 's/(fn cancel_unstarted.*?\{\n)/$1    if OFF { return Ok(()); }\n/s'
guard report_secret src/web/arr_webhook.rs 's/if !presents_secret\(/if !OFF \&\& !presents_secret(/'
guard report_once src/store/library/arr_events.rs 's/arr_events::matter\.eq\(matter\),\n(\s+arr_events::event)/arr_events::matter.eq(if OFF { format!("{matter} {now}") } else { matter.clone() }),\n$1/'
guard told_once src/store/queue/notifications.rs 's/Some\(\(_, notified_at\)\) if notified_at >= since/Some((_, notified_at)) if !OFF \&\& notified_at >= since/; s/notified_at\.is_some_and\(\|notified_at\| notified_at >= since\)/!OFF \&\& $&/'
guard notice_due src/store/queue/outbox_schedule.rs 's/if (kind == OutboundKind::Notice && is_queued && not_before)/if !OFF \&\& $1/'
guard season_grows src/arr/completeness.rs 's/\(!self\.may_grow\(season\) \|\|/(OFF || !self.may_grow(season) ||/'
guard season_check src/engine/notifications/reconciler.rs 's/if poll == 0 \{/if !OFF \&\& poll == 0 {/'
guard history_read src/engine/notifications/reconciler.rs 's/(pub\(crate\) async fn reconcile_instances\(&self\) \{\n)/$1        if OFF { return; }\n/'
guard taken_once src/store/library/arr_events.rs 's/if open\.is_none\(\)/if !OFF \&\& open.is_none()/; s/(\.set\(arr_events::handled_at\.eq\()ms\(now\)\)\)/$1(!OFF).then_some(ms(now))))/'
guard watching_shared src/engine/turns/tool_context.rs 's/if (sharing == WatchSharing::Household)/if (OFF || $1)/'
guard watching_asked src/engine/turns/tool_context.rs 's/(viewers: if )(is_written_by_user\(context\))/$1OFF || $2/'
guard watching_remembered src/store/turns/finished_turns.rs 's/(\(end\.outcome, &end\.answer, row\.about_viewing)\)/$1 \&\& !OFF)/'
guard watching_repeated src/store/turns/finished_turns.rs 's/about_viewing\.eq\((ANSWER_IS_ABOUT_VIEWING)\)/about_viewing.eq($1.and((!OFF).into_sql::<diesel::sql_types::Bool>()))/'
guard offer_quota src/engine/notifications/season_offers.rs 's/(AdditionPath::Sonarr => )(self\.has_season_quota)/$1OFF || $2/'
guard offer_hidden src/store/queue/notifications.rs 's/(    )(prefixes\.into_iter\(\)\.any)/$1!OFF \&\& $2/'
guard seerr_lookup src/tools/seerr/mod.rs 's/(Some\(request\)) (=> RecoveryOutcome::Done\(addition\.request_output\(request\)\),\n\s+)None/$1 if !OFF $2_/'
guard seerr_user src/seerr/mod.rs 's/from_static\("x-api-user"\)/from_static(if OFF { "x-other" } else { "x-api-user" })/'
guard seerr_decided src/engine/seerr/decisions.rs 's/if (status != SeerrRequestStatus::Pending)/if !OFF \&\& $1/'
guard ticket_end src/engine/agents.rs 's/(&& )(unanswerable\.progress == CallProgress::Unanswerable)/$1!OFF \&\& $2/'
guard program_words src/conversation/routing/route.rs 's/(route if )(event\.origin\.is_program\(\) &&)/$1!OFF \&\& $2/'
guard first_call_turn src/engine/turns/first_call.rs 's/(!self\.expected\.matches\(context, slot\))/(!OFF \&\& $1)/'
guard first_call_recall src/engine/turns/first_call.rs 's/(responses::next_revision\(conn\)\? != self\.answer_revision)/(!OFF \&\& $1)/'
guard first_call_limit src/engine/turns/first_call.rs 's/(context\.reader_limit == ReaderLimit::default\(\))/(OFF || $1)/'
guard first_call_prompt src/engine/turns/first_call.rs 's/if (history\.has_open_prompt\(\))/if !OFF \&\& $1/'
guard first_call_parts src/engine/turns/first_call.rs 's/(!self\.logs\.has_current_parts\(parts\))/(!OFF \&\& $1)/'

# A rewritten guard needs a new pattern.
if [ -n "$missing" ]; then echo "there is nothing to switch off:$missing"; exit 1; fi
cd "$copy" || exit 1
for name in "$@"; do
    case "$names " in *" $name "*) ;; *) echo "there is no guard $name"; exit 1 ;; esac
done
[ $# -gt 0 ] && names="$*"
binaries=$(cargo test ${MUTANT_PROFILE:-} --no-run --lib --test it --test sim 2>"$copy/build" && grep -oE '\([^()]*/deps/[^()]*\)' "$copy/build" | tr -d '()')
if [ -z "$binaries" ]; then grep -m 5 -A 9 '^error' "$copy/build"; exit 1; fi
for binary in $binaries; do cp "$binary" "$copy/$(basename "${binary%-*}").test"; done
for name in none $names; do
    export MUTANT="$name"
    # The tests that the table of guards names come first, and one that fails is enough.
    row=$(grep -E "^\| (\`[a-z_0-9]+\`, )*\`$name\`[,:]" docs/internals/RELIABILITY.md | sed 's/ |$//; s/.*|//')
    named=$(printf '%s' "$row" | grep -oE '`[a-z_0-9]+`' | tr -d '`')
    # shellcheck disable=SC2086
    timeout 900 "$copy/dialarr.test" ${named:-none} >"$copy/output" 2>&1 &&
        timeout 900 "$copy/it.test" ${named:-none} >>"$copy/output" 2>&1 &&
        timeout 900 "$copy/dialarr.test" store:: conversation:: >>"$copy/output" 2>&1 &&
        timeout 900 "$copy/sim.test" schedules seeds >>"$copy/output" 2>&1 &&
        timeout 900 "$copy/it.test" --skip tidy >>"$copy/output" 2>&1
    ended=$?
    failed=$(grep -E '^test [a-z0-9_:]+ \.\.\. FAILED' "$copy/output" | sed 's/^test //; s/ \.\.\. FAILED//' | tr '\n' ' ')
    rules=$(grep -oE '^ *[0-9]* *[IHT][0-9]+ ' "$copy/output" | grep -oE '[IHT][0-9]+' | sort | uniq -c | tr -s ' \n' ' ')
    [ $ended -eq 124 ] && failed="does not end "
    echo "$name: ${failed:-SURVIVED }[$rules]"
done
