//! Group of a bot in the console: the operator approves it, changes it, reads who wrote what, and blocks it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use dialarr::app::Polling;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::people::naming::UserName;
use dialarr::conversation::routing::senders::Senders;
use dialarr::conversation::transcript::UserAddress;
use dialarr::http::{HttpClient, install_tls};
use dialarr::messaging::telegram::Telegram;
use dialarr::messaging::telegram::fake::{FakeBot, FakeTelegram};
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::people::rooms;
use dialarr::store::people::users::{self, FirstContactRole};
use jiff::tz::TimeZone;
use tokio::time::{Instant, sleep_until};

use super::{ConsoleServer, create_shots_folder};

const ANN: i64 = 7_000_000_002;
const BOB: i64 = 7_000_000_003;
const FAMILY: i64 = -500;
/// Name that somebody gave the group.
const HOSTILE_NAME: &str = "Family <img src=x onerror=alert(1)>";
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until Telegram has this many messages of the bot in the group.
async fn wait_for_messages(telegram: &FakeTelegram, count: usize) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while telegram.texts_to(FAMILY).len() < count {
        ensure!(Instant::now() < deadline, "the group has {:?}", telegram.texts_to(FAMILY));
        sleep_until(Instant::now() + CHECK_INTERVAL).await;
    }
    Ok(())
}

/// Lets people talk and vote in the group.
async fn talk(telegram: &FakeTelegram) -> Result<()> {
    telegram.group_text(FAMILY, BOB, "shall we watch <script>alert(1)</script> tonight?");
    telegram.group_text(FAMILY, ANN, "@home_bot vote Dune, Heat");
    wait_for_messages(telegram, 2).await?;
    let poll = telegram.sent_messages().into_iter().rfind(|sent| sent.poll.is_some());
    let poll = poll.map_or(0, |sent| sent.message_id);
    for (person, option) in [(ANN, 1), (BOB, 1)] {
        ensure!(telegram.vote(person, FAMILY, poll, &[option]), "the poll is open");
    }
    telegram.group_text(FAMILY, ANN, "@home_bot close vote");
    wait_for_messages(telegram, 3).await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_approves_reads_and_blocks_a_group() -> Result<()> {
    let shots = create_shots_folder("target/browser-rooms")?;
    install_tls();
    let folder = tempfile::tempdir()?;
    let (radarr, sonarr) = (FakeRadarr::new(), FakeSonarr::new());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, "https://sms.example.org");
    let bot = FakeBot { token: "501:AAE-x_9".to_owned(), username: "home_bot".to_owned() };
    let telegram = FakeTelegram::new(bot, Clock::System);
    let account = telegram.client_account("https://telegram.invalid");
    let port = Telegram::new(account, HttpClient::in_process(telegram.in_process()));
    let mut blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None)?;
    blueprint.settings.senders = Senders::from_addresses(vec![port.address()]);
    blueprint.channels = blueprint.channels.clone().with(Arc::new(port));
    blueprint.polling = Polling::On;
    let console = ConsoleServer::start(&folder.path().join("browser.db"), &peers, blueprint).await?;
    register(&console).await?;

    for person in [ANN, BOB] {
        telegram.start_bot(person, "");
    }
    telegram.set_privacy_mode(false);
    telegram.create_group(FAMILY, &[ANN, BOB]);
    telegram.rename_group(FAMILY, HOSTILE_NAME);
    telegram.add_bot_to_group(FAMILY, BOB);
    wait_for_room(&console).await?;
    let mut outcome = console.run_script("rooms.mjs", &shots, &[("PART", "approve")]).await;
    if outcome.is_ok() {
        wait_for_messages(&telegram, 1).await?;
        talk(&telegram).await?;
        outcome = console.run_script("rooms.mjs", &shots, &[("PART", "read")]).await;
    }
    let texts = telegram.texts_to(FAMILY);
    console.stop().await?;

    outcome?;
    assert_eq!(texts[2], "What should we watch? Heat wins with 2 of 2 votes.");
    Ok(())
}

async fn register(console: &ConsoleServer) -> Result<()> {
    for (account, name, role) in
        [(ANN, "Ann", FirstContactRole::Admin), (BOB, "Bob", FirstContactRole::Member)]
    {
        let name = UserName::parse(name)?;
        let now = Clock::System.now();
        let register = move |conn: &mut _| {
            let address = UserAddress::parse(&format!("telegram:{account}"));
            let address = address.unwrap_or_else(|| panic!("{account} is no account"));
            let user = users::ensure_user(conn, &address, role, now)?;
            users::set_name(conn, user, &name, now)
        };
        console.app.db.write(register).await?;
    }
    Ok(())
}

/// Waits until the group is known.
async fn wait_for_room(console: &ConsoleServer) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while console.app.db.read(|conn| rooms::count_pending_rooms(conn)).await? == 0 {
        ensure!(Instant::now() < deadline, "the group is not known");
        sleep_until(Instant::now() + CHECK_INTERVAL).await;
    }
    Ok(())
}
