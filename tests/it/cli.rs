//! `serve`, `demo` and `chat` at a terminal.

use std::time::Duration;

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use crate::harness::cli::{Cli, exchange};

/// Complete configuration whose peers do not exist.
const UNREACHABLE_PEERS: [(&str, &str); 14] = [
    ("HOST", "127.0.0.1"),
    ("PORT", "0"),
    ("PUBLIC_URL", "https://sms.example.org"),
    ("ADMIN_PHONE", "+15550100123"),
    ("TWILIO_ACCOUNT_SID", "AC0123456789abcdef0123456789abcdef"),
    ("TWILIO_AUTH_TOKEN", "0123456789abcdef"),
    ("TWILIO_PHONE_NUMBER", "+15550100100"),
    ("TWILIO_API_URL", "http://127.0.0.1:9"),
    ("LLM_BASE_URL", "http://127.0.0.1:9/v1"),
    ("LLM_MODEL", "a-model"),
    ("SONARR_URL", "http://127.0.0.1:9"),
    ("SONARR_API_KEY", "0123456789abcdef"),
    ("RADARR_URL", "http://127.0.0.1:9"),
    ("RADARR_API_KEY", "0123456789abcdef"),
];

/// Sentence below every sign-in link.
const SIGNS_IN_ONCE: &str = "The link works once, for ten minutes; hint: on another machine, replace the part before /sign-in with the console's URL there";

/// Presses the button of a printed link, and returns the status of the response.
fn sign_in(console: &str, link: &str) -> String {
    let token = link.trim_end().strip_prefix("http://127.0.0.1:3001/sign-in/link?token=").unwrap();
    let body = format!("token={token}");
    let request = format!(
        "POST /sign-in/link HTTP/1.1\r\nHost: {console}\r\nOrigin: http://{console}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(console, &request).0
}

#[test]
fn help_names_the_commands() {
    let ended = Cli::new().run(&["--help"], &[]);
    assert_eq!(ended.code, Some(0));
    insta::assert_snapshot!(ended.output, @r"
    Text a phone number, get things done on your Sonarr and Radarr

    Usage: dialarr <COMMAND>

    Commands:
      demo          Try everything on this machine, with simulated servers and no account or key
      serve         Answer texts: listen for webhooks, and finish the work that a crash interrupted
      chat          Text in the terminal as ADMIN_PHONE, with the real configuration and libraries
      doctor        Check the configuration and all connections, and suggest how to fix problems
      health        Check the health of the running service, for containers
      config        Show and change the stored settings, also while the service runs
      setup         Show the settings that Sonarr, Radarr and the channels need for Dialarr; --apply changes them
      users         List, change, export and erase users, also while the service runs
      backup        Write a consistent copy of the database, also while the service runs
      console-link  Print a sign-in link for the console of the running service, valid once for ten minutes
      mcp           Connect an agent on this machine to the running service, over standard input and output (MCP)
      eval          Run scenario files, and report the scenarios that fail
      help          Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    ");
}

#[test]
fn all_configuration_problems_are_reported_without_secrets() {
    let environment =
        [("PORT", "many"), ("LLM_API_KEY", "hush hush"), ("SONARR_API_KEY", "sesame"), ("TZ", "Moon/Base")];
    let ended = Cli::new().run(&["serve"], &environment);
    assert_eq!((ended.code, ended.output.as_str()), (Some(78), ""));
    insta::assert_snapshot!(ended.errors, @r"
    error: failed to read the configuration
      PORT: not a port from 0 to 65535, e.g. PORT=3000
      TZ: not a time zone that this system knows, e.g. TZ=Europe/Berlin
      LLM_API_KEY: not a secret: it has a space or a character outside ASCII, e.g. LLM_API_KEY=sk-0123456789
      LLM_MODEL: needed with LLM_API_KEY or LLM_BASE_URL, e.g. LLM_MODEL=gpt-5.4-mini
      SONARR_URL: needed with SONARR_API_KEY, e.g. SONARR_URL=http://sonarr:8989
    ");
}

#[test]
fn serve_refuses_a_second_process_and_stops_on_request() {
    let cli = Cli::new();
    let served = cli.serve(&UNREACHABLE_PEERS);
    let ok = "HTTP/1.1 200 OK".to_owned();
    let alive = r#"{"status":"ok","checks":[{"name":"database","ok":true,"detail":"responds"}]}"#;
    assert_eq!(served.get("/health"), (ok.clone(), alive.to_owned()));
    assert_eq!(served.get("/ready").0, ok);

    let second = cli.run(&["serve"], &UNREACHABLE_PEERS);
    assert_eq!(second.code, Some(1));
    let message = second.errors.lines().last().unwrap_or_default();
    assert_eq!(
        message,
        "error: failed to open dialarr.db: another Dialarr process is using it; hint: stop that process first"
    );

    let (code, took) = served.terminate();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(cli.serve(&UNREACHABLE_PEERS).terminate().0, Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn serve_raises_the_limit_of_open_files() {
    let cli = Cli::new();
    let served = cli.serve_with_files(300, &UNREACHABLE_PEERS);
    assert_eq!(served.files(), 4096);
}

#[test]
fn written_files_are_readable_by_their_owner_only() {
    let cli = Cli::new();
    let served = cli.serve(&UNREACHABLE_PEERS);
    assert_eq!(cli.run(&["backup", "copy.db"], &[]).code, Some(0));
    for name in ["dialarr.db", "dialarr.db-wal", "copy.db"] {
        assert_eq!(cli.mode(name), 0o600, "{name}");
    }
    served.terminate();
}

#[test]
fn console_link_signs_in_at_the_running_service() {
    let cli = Cli::new();
    let mut environment = UNREACHABLE_PEERS.to_vec();
    environment.push(("CONSOLE_BIND", "127.0.0.1:0"));
    let mut served = cli.serve(&environment);
    let console = served.console();

    let ended = cli.run(&["console-link"], &[("CONSOLE_BIND", "127.0.0.1:3001")]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(ended.errors.lines().collect::<Vec<_>>(), [SIGNS_IN_ONCE]);
    assert_eq!(sign_in(&console, &ended.output), "HTTP/1.1 303 See Other");
    assert_eq!(sign_in(&console, &ended.output), "HTTP/1.1 410 Gone");
    assert_eq!(served.get("/sign-in").0, "HTTP/1.1 404 Not Found");

    // A client that sends its request byte by byte does not delay the shutdown.
    let mut slow = TcpStream::connect(&console).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    let (code, took) = served.terminate();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn console_link_made_while_stopped_works_after_the_start() {
    let cli = Cli::new();
    let mut environment = UNREACHABLE_PEERS.to_vec();
    environment.push(("CONSOLE_BIND", "127.0.0.1:0"));
    cli.serve(&environment).terminate();

    let ended = cli.run(&["console-link"], &[("CONSOLE_BIND", "127.0.0.1:3001")]);

    assert_eq!(
        ended.errors.lines().collect::<Vec<_>>(),
        [SIGNS_IN_ONCE, "The service is not running; start it before opening the link; hint: dialarr serve"]
    );
    let mut served = cli.serve(&environment);
    assert_eq!(sign_in(&served.console(), &ended.output), "HTTP/1.1 303 See Other");
}

#[test]
fn occupied_console_port_stops_the_start_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut environment = UNREACHABLE_PEERS.to_vec();
    environment.push(("CONSOLE_BIND", &address));

    let ended = Cli::new().run(&["serve"], &environment);

    assert_eq!(ended.code, Some(1));
    let message = ended.errors.lines().find(|line| line.starts_with("error:")).unwrap_or_default();
    assert_eq!(
        message,
        format!(
            "error: failed to listen on {address} for the console; hint: set CONSOLE_BIND, or leave it empty for none"
        )
    );
}

#[test]
fn console_link_fails_without_a_console() {
    let ended = Cli::new().run(&["console-link"], &[]);
    assert_eq!(
        (ended.code, ended.errors.as_str()),
        (
            Some(1),
            "error: failed to create a sign-in link: the console is off because CONSOLE_BIND is empty; hint: set it and restart\n"
        )
    );
}

#[test]
fn demo_prints_its_console_address_and_sign_in_link() {
    let line = Cli::new().demo_greets(&[]).pop().unwrap();
    let (address, link) = line.strip_prefix("Console at ").unwrap().split_once("; sign in with ").unwrap();
    let (before, token) = link.split_once("/sign-in/link?token=").unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{line}");
    assert_eq!((before, token.len()), (address, 43));
}

#[test]
fn demo_of_the_setup_prints_values_for_the_assistant() {
    let cli = Cli::new();
    let lines = cli.demo_greets(&["--setup"]);
    for name in
        ["Your number: +15550100101", "Radarr: URL http://127.0.0.1:", "Sonarr: URL http://127.0.0.1:"]
    {
        assert!(lines.iter().any(|line| line.trim().starts_with(name)), "{name}: {lines:?}");
    }
    assert!(lines.last().unwrap().contains("/sign-in/link?token="), "{lines:?}");
    // The database is in a temporary folder.
    assert_eq!(cli.names(), [] as [String; 0]);
}

#[test]
fn text_before_the_assistant_has_finished_does_not_end_the_demo() {
    let ended = Cli::new().run_typing(&["demo", "--setup"], "status\n");
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.errors.contains("Not delivered: the webhook answers 503"), "{}", ended.errors);
    assert!(ended.errors.contains("Finish the assistant first"), "{}", ended.errors);
}

#[test]
fn demo_runs_a_script() {
    let cli = Cli::new();
    cli.write("texts.txt", "# A comment.\n\nadd gladiator\nhave dune\nremove dune\nno\nhow are you?\n");
    let ended = cli.run(&["demo", "--script", "texts.txt"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    insta::assert_snapshot!(ended.output, @r#"
    you: add gladiator
    dialarr: Added Gladiator (2000).
    you: have dune
    dialarr: In the library: Dune (2021), 21.4 GB.
    you: remove dune
    dialarr: Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.
    you: no
    dialarr: OK, kept.
    you: how are you?
    dialarr: Hi! You can text "add Paddington" or "do we have Gladiator".
    "#);
}

#[test]
fn demo_adds_the_seasons_that_an_answer_names() {
    let cli = Cli::new();
    cli.write("texts.txt", "get how i met your mother\nall of them\nadd breaking bad\n1 and 2\n");
    let ended = cli.run(&["demo", "--script", "texts.txt"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    insta::assert_snapshot!(ended.output, @"
    you: get how i met your mother
    dialarr: How I Met Your Mother (2005) has 9 seasons. Which ones: all, first, latest, or numbers?
    you: all of them
    dialarr: Added How I Met Your Mother (2005).
    you: add breaking bad
    dialarr: Breaking Bad (2008) has 5 seasons. Which ones: all, first, latest, or numbers?
    you: 1 and 2
    dialarr: Added Breaking Bad (2008), seasons 1 and 2.
    ");
}

#[test]
fn demo_runs_a_script_through_a_phone() {
    let cli = Cli::new();
    cli.write("texts.txt", "have dune\nremove dune\nyes\n");
    let ended = cli.run(&["demo", "--phone", "--script", "texts.txt"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    insta::assert_snapshot!(ended.output, @"
    you: have dune
    dialarr: In the library: Dune (2021), 21.4 GB.
    you: remove dune
    dialarr: Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.
    you: yes
    dialarr: Deleted Dune (2021). Freed 21.4 GB.
    ");
}

#[test]
fn missing_script_is_named() {
    let ended = Cli::new().run(&["demo", "--script", "none.txt"], &[]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("error: failed to read none.txt"), "{}", ended.errors);
}

#[test]
fn chat_without_an_admin_creates_no_user() {
    let cli = Cli::new();
    let ended = cli.run(&["chat"], &[]);
    assert_eq!(
        (ended.code, ended.errors.as_str()),
        (
            Some(1),
            "error: failed to start a chat: ADMIN_PHONE is not set; hint: set it to your number, \
             e.g. ADMIN_PHONE=+15550100123\n"
        )
    );
    assert_eq!(cli.names(), [""; 0]);
}

#[test]
fn chat_with_only_an_admin_answers_by_keyword() {
    let cli = Cli::new();
    cli.write(".env", "ADMIN_PHONE=+15550100123\n");
    let ended = cli.run_typing(&["chat"], "commands\nstatus\nhow are you?\n");
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    insta::assert_snapshot!(ended.output, @r#"
    You can text: ADD, SEARCH, HAVE or REMOVE title, STATUS, UPCOMING, TELL ME, MORE, RESET. A number picks from a list.
    What I know: WHAT DO YOU KNOW, FORGET number or ALL.
    Notifications: NOTIFY OFF or ON, QUIET 22-7. LINK phone.
    Admins: USERS, APPROVE, DENY or BLOCK code, QUOTA name +5, TELL EVERYONE text, PAUSE, RESUME.
    No library is set up for that. An admin has to check it.
    Hi! You can text "add Paddington" or "what's new".
    "#);
}
