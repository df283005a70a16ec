//! `dialarr users` at the shell.

use dialarr::conversation::transcript::{PhoneNumber, UserAddress};
use dialarr::store::Conn;
use dialarr::store::audit::Actor;
use dialarr::store::confirmation::code_misses;
use dialarr::store::database::shell_access;
use dialarr::store::people::operator_links::{self, LinkOutcome};
use dialarr::store::people::user_admin;
use dialarr::store::turns::daily_budget::Day;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::harness::cli::{Cli, Ended};

const ADMIN: &str = "+15550100123";
const SAM: &str = "+15550100124";

/// Creates a household whose admin has sent messages in the terminal.
fn household() -> Cli {
    let cli = Cli::new();
    cli.write(".env", &format!("ADMIN_PHONE={ADMIN}\nPHONE_WHITELIST={SAM}\nHOST=127.0.0.1\nPORT=0\n"));
    let talked = cli.run_typing(&["chat"], "find walrus\n");
    assert_eq!(talked.code, Some(0), "{}", talked.errors);
    cli
}

#[track_caller]
fn done(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    ended.output
}

#[track_caller]
fn refused(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    assert_eq!(ended.output, "");
    ended.errors.lines().last().unwrap_or_default().to_owned()
}

/// Removes the times of the last messages, which differ from run to run.
fn without_times(table: &str) -> String {
    let year = jiff::Zoned::now().year().to_string();
    let cut = |line: &str| line.split(&format!("  {year}-")).next().unwrap_or_default().trim_end().to_owned();
    table.lines().map(cut).collect::<Vec<_>>().join("\n")
}

#[test]
fn users_help_has_one_line_per_command() {
    let ended = Cli::new().run(&["users", "--help"], &[]);
    insta::assert_snapshot!(done(ended));
}

#[test]
fn users_list_is_a_table() {
    let cli = household();
    done(cli.run(&["users", "set", SAM, "--name", "Sam O'Hara", "--delete", "on", "--movies", "3"], &[]));
    insta::assert_snapshot!(without_times(&done(cli.run(&["users", "list"], &[]))));
}

#[test]
fn every_address_of_a_user_finds_the_user_at_the_shell() {
    let cli = household();
    let account = UserAddress::parse("pigeon:501").unwrap();
    let now = Timestamp::now();
    let linked = shell_access::visit_database(&cli.path("dialarr.db"), |conn| {
        let sam = user_admin::find_user_id(conn, PhoneNumber::parse(SAM).unwrap())?.unwrap();
        operator_links::link_address(conn, sam, &account, Actor::Shell, now)
    });
    assert_eq!(linked.unwrap(), LinkOutcome::Linked);

    assert!(
        done(cli.run(&["users", "show", "pigeon:501"], &[]))
            .starts_with(&format!("addresses: {SAM}, pigeon:501\n"))
    );
    assert!(done(cli.run(&["users", "list"], &[])).contains(&format!("{SAM}, pigeon:501")));
    assert!(done(cli.run(&["users", "promote", "pigeon:501"], &[])).contains("role: admin"));
    let forgotten = cli.run(&["users", "forget", "pigeon:501", "--yes"], &[]);
    assert!(
        forgotten.errors.contains("hint: remove the number from PHONE_WHITELIST"),
        "{}",
        forgotten.errors
    );
    assert!(!done(cli.run(&["users", "list"], &[])).contains(SAM));
}

#[test]
fn users_show_includes_conversations() {
    let cli = household();
    let shown = done(cli.run(&["users", "show", ADMIN], &[]));
    let head: Vec<&str> = shown.lines().take(11).collect();
    assert_eq!(
        head,
        [
            "addresses: +15550100123",
            "name: -",
            "role: admin",
            "status: active",
            "may: add, delete, 4K",
            "movies: default",
            "seasons: default",
            "space in GB: default",
            "age ratings: decides for others",
            "digest: off",
            "opted out: no"
        ]
    );
    let conversations: Vec<Vec<&str>> =
        shown.lines().skip(13).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(conversations[0], ["STARTED", "ENDED", "REASON", "TEXTS", "NAME"]);
    assert_eq!((conversations.len(), &conversations[1][2..5]), (2, &["-", "-", "1"][..]));
}

#[test]
fn users_set_reports_and_changes_only_the_given_settings() {
    let cli = household();
    let set = |arguments: &[&str]| {
        let output = done(cli.run(&[&["users", "set", "+1 (555) 010-0124"], arguments].concat(), &[]));
        output.lines().skip(1).take(6).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        set(&["--name", " Sam  the Great "]),
        "name: Sam the Great, role: member, status: active, may: add, movies: default, seasons: default"
    );
    assert_eq!(
        set(&["--add", "off", "--four-k", "on", "--seasons", "0"]),
        "name: Sam the Great, role: member, status: active, may: 4K, movies: default, seasons: 0"
    );
    assert_eq!(
        set(&["--four-k", "off", "--seasons", "default"]),
        "name: Sam the Great, role: member, status: active, may: -, movies: default, seasons: default"
    );
}

#[test]
fn suspension_is_shown_and_lifted_at_the_shell() {
    let cli = household();
    let guesses = |conn: &mut Conn| {
        let sam = user_admin::find_user_id(conn, PhoneNumber::parse(SAM).unwrap())?.unwrap();
        let now = Timestamp::now();
        // A day in the future counts as today, so that midnight in between does not matter.
        let day = Day::from_timestamp(now + SignedDuration::from_hours(48), &TimeZone::UTC);
        (0..5).try_for_each(|_| code_misses::count_miss(conn, sam, &day, now).map(drop))
    };
    shell_access::visit_database(&cli.path("dialarr.db"), guesses).unwrap();
    let line = "deletions and approvals by text: suspended until tomorrow (too many wrong codes)";
    assert!(done(cli.run(&["users", "show", SAM], &[])).contains(line));
    assert!(!done(cli.run(&["users", "unsuspend", SAM], &[])).contains(line));
    assert!(!done(cli.run(&["users", "show", SAM], &[])).contains(line));
}

#[test]
fn last_admin_cannot_be_demoted() {
    let cli = household();
    let last = "this is the last active admin; hint: dialarr users promote";
    let refusal = refused(&cli.run(&["users", "demote", ADMIN], &[]));
    assert_eq!(refusal, format!("error: failed to demote {ADMIN}: {last}"));
    let refusal = refused(&cli.run(&["users", "forget", ADMIN, "--yes"], &[]));
    assert_eq!(refusal, format!("error: failed to forget {ADMIN}: {last}"));

    assert!(done(cli.run(&["users", "promote", SAM], &[])).contains("role: admin"));
    assert!(done(cli.run(&["users", "demote", ADMIN], &[])).contains("role: member"));
}

#[test]
fn unknown_number_is_refused_with_a_hint() {
    let cli = household();
    for command in [
        &["users", "show", "+15550100125"][..],
        &["users", "promote", "+15550100125"],
        &["users", "unsuspend", "+15550100125"],
        &["users", "demote", "+15550100125"],
        &["users", "set", "+15550100125", "--add", "on"],
        &["users", "forget", "+15550100125", "--yes"],
        &["users", "forget", "+15550100125"],
        &["users", "export", "+15550100125"],
    ] {
        assert_eq!(
            refused(&cli.run(command, &[])),
            "error: failed to find +15550100125: no user has this address; hint: dialarr users list"
        );
    }
}

#[test]
fn invalid_arguments_are_refused_before_the_database_is_opened() {
    for (arguments, message) in [
        (
            &["users", "promote", "555 0100"][..],
            "a number starts with + and a country code, e.g. +15550100123",
        ),
        (&["users", "set", SAM, "--name", "Sam <3"], "not a name"),
        (&["users", "set", SAM, "--name", "Samantha Alexandra the Thirtieth"], "not a name"),
        (&["users", "set", SAM, "--movies", "many"], "a limit is a number or \"default\""),
        (&["users", "set", SAM, "--digest", "daily 8"], "a day of the week and a full hour"),
        (&["users", "set", SAM, "--add", "maybe"], "possible values: on, off"),
        (&["users", "set", SAM], "required arguments were not provided"),
    ] {
        let ended = Cli::new().run(arguments, &[]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.errors.contains(message), "{}", ended.errors);
    }
}

#[test]
fn folder_without_a_database_is_reported() {
    assert_eq!(
        refused(&Cli::new().run(&["users", "list"], &[])),
        "error: failed to find dialarr.db; hint: run this command in the directory of the service, with its configuration"
    );
}

#[test]
fn users_forget_needs_the_typed_word() {
    let cli = household();
    let ended = cli.run_typing(&["users", "forget", SAM], "yes\n");
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.errors,
        format!(
            "Type FORGET to erase all data of {SAM}: error: failed to forget {SAM}: FORGET was not typed\n"
        )
    );
    let ended = cli.run_typing(&["users", "forget", SAM], "FORGET\n");
    assert_eq!(ended.output, format!("forgotten: {SAM}\n"), "{}", ended.errors);
    assert_eq!(
        ended.errors.lines().last(),
        Some(
            "Type FORGET to erase all data of +15550100124: \
         hint: remove the number from PHONE_WHITELIST, or it is added again at the next start"
        )
    );
    assert!(!done(cli.run(&["users", "list"], &[])).contains(SAM));
}

#[test]
fn erased_user_leaves_no_trace_in_the_file() {
    let cli = household();
    let holds = |word: &str| cli.read("dialarr.db").windows(word.len()).any(|bytes| bytes == word.as_bytes());
    assert!(holds("walrus") && holds(ADMIN));
    done(cli.run(&["users", "promote", SAM], &[]));
    done(cli.run(&["users", "forget", ADMIN, "--yes"], &[]));
    assert_eq!((holds("walrus"), holds(ADMIN)), (false, false));
}

#[test]
fn export_is_written_to_a_new_file() {
    let cli = household();
    let written = cli.run(&["users", "export", ADMIN, "me.json"], &[]);
    assert_eq!((written.code, written.output.as_str()), (Some(0), ""), "{}", written.errors);
    assert_eq!(cli.mode("me.json"), 0o600);
    let export: Value = serde_json::from_slice(&cli.read("me.json")).unwrap();
    assert_eq!(export["conversations"][0]["turns"][0]["texts_received"][0]["body"], "find walrus");

    let refusal = cli.run(&["users", "export", ADMIN, "me.json"], &[]);
    assert_eq!(refusal.code, Some(1));
    assert!(refusal.errors.contains("error: failed to create me.json"), "{}", refusal.errors);
    let shown: Value = serde_json::from_str(&done(cli.run(&["users", "export", ADMIN], &[]))).unwrap();
    assert_eq!(shown["addresses"][0]["address"], ADMIN);
}

#[test]
fn users_can_be_managed_while_the_service_runs() {
    let cli = household();
    let served = cli.serve(&[]);
    assert!(done(cli.run(&["users", "promote", SAM], &[])).contains("role: admin"));
    assert!(done(cli.run(&["users", "list"], &[])).contains(SAM));
    assert!(done(cli.run(&["users", "export", ADMIN], &[])).contains("find walrus"));
    done(cli.run(&["users", "forget", ADMIN, "--yes"], &[]));
    assert!(!done(cli.run(&["users", "list"], &[])).contains(ADMIN));
    assert_eq!(served.terminate().0, Some(0));
}

#[test]
fn number_is_approved_and_blocked_at_the_shell() {
    let cli = household();
    let approved = done(cli.run(&["users", "approve", "+1 555 010 0130"], &[]));
    assert!(
        approved.starts_with("addresses: +15550100130\nname: -\nrole: member\nstatus: active\n"),
        "{approved}"
    );
    let blocked = done(cli.run(&["users", "block", "+15550100130"], &[]));
    assert!(blocked.contains("status: blocked\n"), "{blocked}");
    assert_eq!(
        refused(&cli.run(&["users", "block", ADMIN], &[])),
        "error: failed to block +15550100123: this is the last active admin; hint: dialarr users promote"
    );
}

#[test]
fn promotion_survives_a_restart_with_the_same_configuration() {
    let cli = household();
    done(cli.run(&["users", "promote", SAM], &[]));
    assert_eq!(cli.run_typing(&["chat"], "status\n").code, Some(0));
    assert!(done(cli.run(&["users", "show", SAM], &[])).contains("role: admin\n"));
}
