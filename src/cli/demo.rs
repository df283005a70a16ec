//! `dialarr demo`: everything on loopback with a made-up library. Each typed line is a message from a demo phone, which
//! a simulated Twilio delivers as a signed webhook; each reply comes back through its REST API.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::listeners::BoundSockets;
use super::serve::StopSignals;
use super::{DemoArguments, chat, console};
use crate::access_rules::TrustedProxies;
use crate::app::App;
use crate::arr::fake::demo_library::demo_library;
use crate::clock::Clock;
use crate::conversation::transcript::PhoneNumber;
use crate::http::HttpClient;
use crate::messaging::fake::{FakeDelivery, FakeTwilio, SentMessage};
use crate::simulation::{self, SimulatedPeers};
use crate::store::audit::Actor;
use crate::store::database::db::Db;
use crate::web::auth;
use jiff::tz::TimeZone;

/// Demo phone, which belongs to an admin.
const PHONE: &str = "+15550100101";
const ANY_PORT: (&str, u16) = ("127.0.0.1", 0);
const CONSOLE: (&str, u16) = ("127.0.0.1", 3001);

/// Typed line: `add dune` from the demo phone, `@2 add dune` from another phone, which is an unknown number at first.
struct DemoLine<'a> {
    from: String,
    body: &'a str,
}

impl<'a> DemoLine<'a> {
    fn parse_line(line: &'a str) -> Self {
        let other = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        match other.and_then(|(phone, body)| Some((phone.parse::<u8>().ok()?, body))) {
            Some((phone @ 2..=9, body)) => Self { from: format!("+1555010010{phone}"), body },
            _ => Self { from: PHONE.to_owned(), body: line },
        }
    }
}

pub(super) async fn run_demo(demo: &DemoArguments) -> anyhow::Result<()> {
    let webhooks = TcpListener::bind(ANY_PORT).await.context("listen on loopback")?;
    let console = match demo.script {
        // A script ends before a user could open the console.
        Some(_) => None,
        None => Some(console_listener().await?),
    };
    let bound = BoundSockets::new(webhooks, console);
    let (address, console) = (bound.webhooks_address()?, bound.console_address()?);
    let folder = tempfile::tempdir().context("make a folder for the demo's database")?;
    let database = folder.path().join("demo.db");
    let database = database.to_str().context("use a temporary folder that is not UTF-8")?;

    let (radarr, sonarr) = demo_library(Clock::System.now());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, &format!("http://{address}"));
    let mut settings = simulation::simulation_settings(TimeZone::system());
    settings.debounce = Duration::from_millis(300);
    let mut blueprint = peers.blueprint(Db::open(database)?, settings, None)?;
    blueprint.admin = Some(PhoneNumber::parse(PHONE)?);
    let app = App::start(blueprint).await?;

    let serving = bound.start_serving(&app, TrustedProxies::default());
    let carrier = DemoCarrier { twilio: peers.twilio.clone(), webhook: HttpClient::network()? };
    let answers = peers.twilio.subscribe();
    eprintln!("Dialarr demo: simulated Sonarr, Radarr and Twilio; nothing leaves this machine.");
    eprintln!("Webhooks at http://{address}; no model, so only keywords are understood.");
    if let Some(script) = &demo.script {
        play_script(&carrier, &app, answers, script).await?;
    } else {
        if let Some(bind) = console {
            let link =
                app.db.write(|conn| auth::create_link(conn, Actor::Dialarr, Clock::System.now())).await?;
            let address = console::console_address(bind);
            eprintln!("Console at {address}; sign in with {address}{link}");
        }
        let hang_up = CancellationToken::new();
        let phone = tokio::spawn(show_answers(carrier.clone(), answers, hang_up.clone()));
        if demo.no_prompt {
            StopSignals::listen()?.wait_for_signal().await;
        } else {
            run_prompt(&carrier).await?;
            app.engine.scheduler.wait_until_idle().await;
            app.relay.wait_until_settled().await?;
        }
        // The phone reports deliveries to the webhook, so the phone stops first.
        hang_up.cancel();
        phone.await.context("show the answers")??;
    }
    app.drain_turns().await;
    serving.close_listeners().await?;
    app.close().await;
    Ok(())
}

/// Listens on the console's usual port, unless a running service uses that port.
async fn console_listener() -> anyhow::Result<TcpListener> {
    match TcpListener::bind(CONSOLE).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(ANY_PORT).await.context("listen on loopback"),
    }
}

/// Simulated Twilio and the route to the program's webhook.
#[derive(Clone)]
struct DemoCarrier {
    twilio: FakeTwilio,
    webhook: HttpClient,
}

impl DemoCarrier {
    async fn send_text(&self, line: &str) -> anyhow::Result<()> {
        let DemoLine { from, body } = DemoLine::parse_line(line);
        let request = self
            .twilio
            .inbound_form(&from, body)
            .into_signed_request()
            .context("write the webhook request")?;
        let response =
            FakeTwilio::deliver_request(request, &self.webhook).await.context("reach our own webhook")?;
        anyhow::ensure!(
            response.status().is_success(),
            "have our own webhook take the text: {}",
            response.status()
        );
        Ok(())
    }

    /// Prints a reply as the demo phone would show it and reports its delivery.
    #[expect(clippy::print_stdout, reason = "the conversation is what the command is for")]
    async fn show_reply(&self, sent: &SentMessage) -> anyhow::Result<()> {
        match sent.to.as_str().strip_prefix("+1555010010") {
            Some(other) if sent.to.as_str() != PHONE => println!("dialarr @{other}: {}", sent.body),
            _ => println!("dialarr: {}", sent.body),
        }
        for delivery in [FakeDelivery::Sent, FakeDelivery::Delivered] {
            if let Some(request) =
                self.twilio.status_callback(sent, delivery).context("write the callback")?
            {
                FakeTwilio::deliver_request(request, &self.webhook).await.context("reach our own webhook")?;
            }
        }
        Ok(())
    }
}

async fn show_answers(
    carrier: DemoCarrier,
    mut answers: Receiver<SentMessage>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    loop {
        let sent = tokio::select! {
            biased;
            sent = answers.recv() => sent,
            () = stop.cancelled() => return Ok(()),
        };
        match sent {
            Ok(sent) => carrier.show_reply(&sent).await?,
            Err(RecvError::Lagged(missed)) => eprintln!("({missed} answers were too fast to show)"),
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

async fn run_prompt(carrier: &DemoCarrier) -> anyhow::Result<()> {
    eprintln!("The link works once, within ten minutes; start the demo again for another.");
    eprintln!(
        "Text something: \"status\", \"add the lion king\", \"remove heat\", \"commands\". Ctrl-D ends."
    );
    eprintln!(
        "Your phone is an admin's. A line that begins with @2 comes from somebody else's: \"@2 hello\"."
    );
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut signals = StopSignals::listen()?;
    while let Some(line) = chat::next_line(&mut lines, &mut signals).await? {
        if !line.trim().is_empty() {
            carrier.send_text(&line).await?;
        }
    }
    Ok(())
}

/// Sends the lines one by one as messages, each after the previous one was answered.
#[expect(clippy::print_stdout, reason = "the conversation is what the command is for")]
async fn play_script(
    carrier: &DemoCarrier,
    app: &App,
    mut answers: Receiver<SentMessage>,
    script: &Path,
) -> anyhow::Result<()> {
    let texts =
        tokio::fs::read_to_string(script).await.with_context(|| format!("read {}", script.display()))?;
    for line in texts.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        println!("you: {line}");
        carrier.send_text(line).await?;
        app.engine.scheduler.wait_until_idle().await;
        app.relay.wait_until_settled().await?;
        // The replies to a settled message were sent, so they are queued already and print right below that message.
        while let Ok(sent) = answers.try_recv() {
            carrier.show_reply(&sent).await?;
        }
    }
    Ok(())
}
