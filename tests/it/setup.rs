//! `dialarr setup`: shown changes, applied changes, and settings that stay.

use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::clock::Clock;
use serde_json::json;

use crate::harness::served::{BOT_TOKEN, SECRET, ServedPeers, TOKEN, serve, set_webhook_elsewhere, telegram};

/// Addresses of the number's webhooks after the setup.
const SET_UP: [&str; 5] = [
    "sms_application_sid=",
    "sms_fallback_method=POST",
    "sms_fallback_url=https://sms.example.org/webhook/twilio",
    "sms_method=POST",
    "sms_url=https://sms.example.org/webhook/twilio#rc=3&rp=5xx,ct,rt&rt=5000",
];
const SONARR_WEBHOOK: &str = "Dialarr http://dialarr:3000/webhook/sonarr dialarr:a-long-random-word \
                              onHealthIssue,onHealthRestored,onImportComplete,onManualInteractionRequired";
const RADARR_WEBHOOK: &str = "Dialarr http://dialarr:3000/webhook/radarr dialarr:a-long-random-word \
                              onDownload,onHealthIssue,onHealthRestored,onManualInteractionRequired";

#[tokio::test(flavor = "multi_thread")]
async fn setup_without_apply_only_shows_the_changes() {
    let peers = ServedPeers::open().await;
    peers.twilio.set_number_field("sms_url", "https://me:hunter2@old.example/sms?token=hush");
    let ended = peers.run(&["setup"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.output, @r"
    Sonarr webhook: address: none -> http://dialarr:3000/webhook/sonarr
    Sonarr webhook: secret: none -> NOTIFICATION_SECRET
    Sonarr webhook: events: none -> health issue, health restored, import complete, manual interaction required
    Radarr webhook: address: none -> http://dialarr:3000/webhook/radarr
    Radarr webhook: secret: none -> NOTIFICATION_SECRET
    Radarr webhook: events: none -> download, health issue, health restored, manual interaction required
    Twilio number +***00: webhook: https://old.example/sms?... -> https://sms.example.org/webhook/twilio#rc=3&rp=5xx,ct,rt&rt=5000
    Twilio number +***00: fallback: none -> https://sms.example.org/webhook/twilio
    No changes were made
      hint: dialarr setup --apply
    ");
    let kept = (
        peers.sonarr.format_connect_entries(),
        peers.radarr.format_connect_entries(),
        peers.twilio.setting_change_count(),
    );
    assert_eq!(kept, (Vec::new(), Vec::new(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_applied_twice_changes_nothing_the_second_time() {
    let peers = ServedPeers::open().await;
    let ended = peers.run(&["setup", "--apply"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    let secrets = [SECRET, TOKEN, peers.sonarr.api_key(), "5550100000"];
    assert!(!secrets.iter().any(|secret| ended.output.contains(secret)), "{}", ended.output);
    let all = || {
        (
            peers.sonarr.format_connect_entries(),
            peers.radarr.format_connect_entries(),
            peers.twilio.number_fields(),
        )
    };
    let set_up = SET_UP.map(str::to_owned).to_vec();
    assert_eq!(all(), (vec![SONARR_WEBHOOK.to_owned()], vec![RADARR_WEBHOOK.to_owned()], set_up));

    let (before, changes) = (all(), peers.twilio.setting_change_count());
    let again = peers.run(&["setup", "--apply"]);
    assert_eq!((again.code, again.errors.as_str()), (Some(0), ""));
    insta::assert_snapshot!(again.output, @r"
    Sonarr webhook: nothing to change
    Radarr webhook: nothing to change
    Twilio number +***00: nothing to change
    ");
    assert_eq!((all(), peers.twilio.setting_change_count()), (before, changes));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_gets_a_webhook_address_of_its_own() {
    let mut peers = ServedPeers::open().await;
    let four_k = FakeRadarr::with_clock(Clock::System);
    peers.set("RADARR_4K_URL", &serve(four_k.router()).await);
    peers.set("RADARR_4K_API_KEY", four_k.api_key());
    peers.set("NOTIFICATION_URL", "https://home.example/dialarr/");
    peers.run(&["setup", "--apply"]);
    let at = |path| RADARR_WEBHOOK.replace("http://dialarr:3000/webhook/radarr", path);
    assert_eq!(peers.radarr.format_connect_entries(), [at("https://home.example/dialarr/webhook/radarr")]);
    assert_eq!(four_k.format_connect_entries(), [at("https://home.example/dialarr/webhook/radarr-4k")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_entries_of_other_programs_are_not_changed() {
    let peers = ServedPeers::open().await;
    peers.sonarr.add_connect_entry("Discord", "http://bot:8080/webhook/sonarr", &["onGrab", "onDownload"]);
    peers.run(&["setup", "--apply"]);
    assert_eq!(
        peers.sonarr.format_connect_entries(),
        ["Discord http://bot:8080/webhook/sonarr : onDownload,onGrab", SONARR_WEBHOOK]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_webhook_entry_is_repaired_and_not_duplicated() {
    let peers = ServedPeers::open().await;
    let id = peers.sonarr.add_connect_entry("dialarr", "http://old:3000/webhook/sonarr", &["onGrab"]);
    peers.sonarr.edit_connect_entry(id, "method", &json!(2));
    let ended = peers.run(&["setup", "--apply", "--take-over"]);
    insta::assert_snapshot!(lines_of(&ended.output, "Sonarr"), @r"
    Sonarr webhook: address: http://old:3000/webhook/sonarr -> http://dialarr:3000/webhook/sonarr
    Sonarr webhook: method: PUT -> POST
    Sonarr webhook: secret: none -> NOTIFICATION_SECRET
    Sonarr webhook: events: grab -> health issue, health restored, import complete, manual interaction required
    Sonarr webhook: done
    ");
    assert_eq!(peers.sonarr.format_connect_entries(), [SONARR_WEBHOOK.replacen("Dialarr", "dialarr", 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_of_another_installation_is_not_changed() {
    let peers = ServedPeers::open().await;
    peers.sonarr.add_connect_entry("Dialarr", "http://other:3000/webhook/sonarr", &["onImportComplete"]);
    let shown = peers.run(&["setup"]);
    insta::assert_snapshot!(lines_of(&shown.output, "No changes"), @r"
    No changes were made
      hint: dialarr setup --apply
      hint: --take-over changes the other webhook instead of adding one
    ");
    let ended = peers.run(&["setup", "--apply"]);
    insta::assert_snapshot!(lines_of(&ended.output, "Sonarr"), @r"
    Sonarr webhook: address: none -> http://dialarr:3000/webhook/sonarr
    Sonarr webhook: secret: none -> NOTIFICATION_SECRET
    Sonarr webhook: events: none -> health issue, health restored, import complete, manual interaction required
    Sonarr webhook: another webhook: Dialarr at http://other:3000/webhook/sonarr -> unchanged
    Sonarr webhook: done
    ");
    let both = [
        "Dialarr http://other:3000/webhook/sonarr : onImportComplete".to_owned(),
        SONARR_WEBHOOK.replacen("Dialarr", "Dialarr 2", 1),
    ];
    assert_eq!(peers.sonarr.format_connect_entries(), both);
    let again = peers.run(&["setup", "--apply", "--take-over"]);
    assert_eq!(lines_of(&again.output, "Sonarr"), "Sonarr webhook: nothing to change");
    assert_eq!(peers.sonarr.format_connect_entries(), both);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_secret_is_sent_again_on_request() {
    let mut peers = ServedPeers::open().await;
    peers.run(&["setup", "--apply"]);
    peers.set("NOTIFICATION_SECRET", "another-word");
    peers.run(&["setup", "--apply"]);
    assert_eq!(peers.radarr.format_connect_entries(), [RADARR_WEBHOOK]);
    let ended = peers.run(&["setup", "--apply", "--renew-secret"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(peers.radarr.format_connect_entries(), [RADARR_WEBHOOK.replace(SECRET, "another-word")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_part_does_not_stop_the_rest_of_setup() {
    let peers = ServedPeers::open().await;
    peers.sonarr.fail_connection_tests("Connection refused (dialarr:3000)");
    let ended = peers.run(&["setup", "--apply"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(ended.errors, @"error: failed to set up 1 of 3");
    insta::assert_snapshot!(lines_of(&ended.output, "Sonarr"), @r"
    Sonarr webhook: address: none -> http://dialarr:3000/webhook/sonarr
    Sonarr webhook: secret: none -> NOTIFICATION_SECRET
    Sonarr webhook: events: none -> health issue, health restored, import complete, manual interaction required
    Sonarr webhook: failed to get the request accepted: Unable to send test message. Error: Connection refused (dialarr:3000)
      hint: Sonarr sends a test before it saves; Dialarr must be running, and Sonarr must reach it at http://dialarr:3000/webhook/sonarr
    ");
    assert_eq!(peers.sonarr.format_connect_entries(), Vec::<String>::new());
    assert_eq!(peers.radarr.format_connect_entries(), [RADARR_WEBHOOK]);
    assert_eq!(peers.twilio.number_fields(), SET_UP);
}

#[tokio::test(flavor = "multi_thread")]
async fn messaging_service_is_configured_to_use_its_number() {
    let mut peers = ServedPeers::open().await;
    peers.set("TWILIO_MESSAGING_SERVICE_SID", "MG00000000000000000000000000000001");
    peers.twilio.set_service_field("inbound_request_url", "https://old.example/sms");
    let ended = peers.run(&["setup", "--apply"]);
    insta::assert_snapshot!(lines_of(&ended.output, "Twilio messaging service"), @r"
    Twilio messaging service: texts go to: https://old.example/sms -> the webhook of each of its numbers
    Twilio messaging service: done
    ");
    assert_eq!(
        peers.twilio.service_fields(),
        ["inbound_request_url=https://old.example/sms", "use_inbound_webhook_on_number=true"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_without_a_secret_or_account_are_skipped() {
    let mut peers = ServedPeers::open().await;
    for variable in ["NOTIFICATION_SECRET", "TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_PHONE_NUMBER"]
    {
        peers.set(variable, "");
    }
    let ended = peers.run(&["setup"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.output, @r"
    Sonarr webhook: skipped, no secret is configured
      hint: set NOTIFICATION_SECRET to a long random string
    Radarr webhook: skipped, no secret is configured
      hint: set NOTIFICATION_SECRET to a long random string
    Twilio number: skipped, no account is configured
      hint: set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_PHONE_NUMBER
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_of_a_bot_is_set_if_it_is_on_and_removed_otherwise() {
    let mut peers = ServedPeers::open().await;
    let bot = telegram();
    peers.set("TELEGRAM_API_URL", &serve(bot.router()).await);
    peers.set("TELEGRAM_BOT_TOKEN", BOT_TOKEN);
    let about_bot = |peers: &ServedPeers, arguments: &[&str]| {
        let ended = peers.run(arguments);
        assert!(!ended.output.contains(BOT_TOKEN), "{}", ended.output);
        lines_of(&ended.output, "Telegram")
    };
    assert_eq!(about_bot(&peers, &["setup"]), "Telegram bot: nothing to change");

    peers.set("TELEGRAM_WEBHOOK", "on");
    let planned = "Telegram bot: webhook: none -> https://sms.example.org/webhook/telegram";
    assert_eq!(about_bot(&peers, &["setup"]), planned);
    let done = format!("{planned}\nTelegram bot: done");
    assert_eq!(about_bot(&peers, &["setup", "--apply"]), done);
    assert_eq!(about_bot(&peers, &["setup", "--apply"]), "Telegram bot: nothing to change");
    let renewed = "Telegram bot: secret: not readable -> sent again\nTelegram bot: done";
    assert_eq!(about_bot(&peers, &["setup", "--apply", "--renew-secret"]), renewed);

    set_webhook_elsewhere(&bot).await;
    peers.set("TELEGRAM_WEBHOOK", "off");
    let removed = "Telegram bot: webhook: other.example -> none\nTelegram bot: done";
    assert_eq!(about_bot(&peers, &["setup", "--apply"]), removed);
    assert_eq!(about_bot(&peers, &["setup"]), "Telegram bot: nothing to change");
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_explains_that_telegram_refuses_the_token() {
    let mut peers = ServedPeers::open().await;
    peers.set("TELEGRAM_API_URL", &serve(telegram().router()).await);
    peers.set("TELEGRAM_BOT_TOKEN", "501:revoked");
    let ended = peers.run(&["setup"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(lines_of(&ended.output, "Telegram"), @r"
    Telegram bot: failed to use the bot: Telegram refuses the token
      hint: copy the token from BotFather to TELEGRAM_BOT_TOKEN again
    ");
}

/// Returns the lines about one subject, with their hints.
fn lines_of(output: &str, what: &str) -> String {
    let mut about = false;
    let lines = output.lines().filter(|line| {
        about = if line.starts_with("  hint") { about } else { line.starts_with(what) };
        about
    });
    lines.collect::<Vec<_>>().join("\n")
}
