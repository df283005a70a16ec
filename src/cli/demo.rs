//! `dialarr demo`: Dialarr on loopback with simulated Sonarr, Radarr and Twilio. Each typed line is delivered as a signed
//! webhook, and each reply is sent through the REST API of the simulated Twilio.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::demo_imports::DemoImports;
use super::demo_output::DemoOutput;
use super::listeners::BoundSockets;
use super::serve::StopSignals;
use super::{DemoArguments, chat, console, demo_phone};
use crate::access_rules::TrustedProxies;
use crate::app::App;
use crate::arr::fake::demo_library::create_demo_servers;
use crate::clock::Clock;
use crate::conversation::transcript::PhoneNumber;
use crate::http::HttpClient;
use crate::messaging::smsgate::fake::{FakePhone, RadioedText};
use crate::messaging::twilio::fake::{FakeDelivery, FakeTwilio, SentMessage};
use crate::simulation::{self, SimulatedPeers};
use crate::store::audit::Actor;
use crate::store::database::db::Db;
use crate::store::demo_history;
use crate::web::auth;
use jiff::tz::TimeZone;

/// Number of the demo admin.
pub(super) const ADMIN_PHONE: &str = "+15550100101";
const ANY_PORT: (&str, u16) = ("127.0.0.1", 0);
/// Answer to `help`, which is not sent as a text.
const HELP: &str = "\
You are texting as an admin. Try:
  status                     what is downloading
  add the lion king          two movies have this title, so it asks which
  when is severance back     the next episode
  remove heat                it asks before it deletes
  @2 hello                   a text from another phone, which an admin has to let in
  commands                   all commands that can be texted
An added title is there after 20 seconds. Ctrl-D exits.";
const CONSOLE_ADDRESS: (&str, u16) = ("127.0.0.1", 3001);

/// Typed line: `add dune` comes from the admin, and `@2 add dune` from another number.
struct DemoLine<'a> {
    from: String,
    body: &'a str,
}

impl<'a> DemoLine<'a> {
    fn parse(line: &'a str) -> Self {
        let other = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        match other.and_then(|(phone, body)| Some((phone.parse::<u8>().ok()?, body))) {
            Some((phone @ 2..=9, body)) => Self { from: format!("+1555010010{phone}"), body },
            _ => Self { from: ADMIN_PHONE.to_owned(), body: line },
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
    let folder = tempfile::tempdir().context("create a folder for the demo database")?;
    let database = folder.path().join("demo.db");
    let database = database.to_str().context("use a temporary folder that is not UTF-8")?;

    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, &format!("http://{address}"));
    let mut settings = simulation::simulation_settings(TimeZone::system());
    settings.debounce = Duration::from_millis(300);
    // One person types all texts.
    settings.rate_limit = None;
    let mut blueprint = peers.blueprint(settings, None)?;
    blueprint.admin = Some(PhoneNumber::parse(ADMIN_PHONE)?);
    let secret = SecretString::from(format!("{:032x}", rand::random::<u128>()));
    blueprint.arr_secret = Some(secret.clone());
    let phone = demo.phone.then(demo_phone::create_phone).transpose()?;
    if let Some(phone) = &phone {
        demo_phone::use_phone(&mut blueprint, phone);
    }
    let app = App::start(Db::open(database)?, peers.clock.clone(), blueprint).await?;
    app.db.write(demo_history::insert_demo_history).await.context("store the history of the demo")?;
    let listeners = bound.start_serving(&app, TrustedProxies::default());
    let output = DemoOutput::new(demo);
    let imports = DemoImports::new(&peers, HttpClient::network()?, address, secret);
    let import_task = tokio::spawn(imports.run());
    let carrier =
        DemoCarrier { twilio: peers.twilio.clone(), phone, webhook: HttpClient::network()?, output };
    let replies = peers.twilio.subscribe();
    let channel = if demo.phone { "a phone" } else { "Twilio" };
    eprintln!("Dialarr demo: simulated Sonarr, Radarr and {channel}; nothing leaves this machine.");
    eprintln!("Webhooks at http://{address}; no model: a grammar reads the texts.");
    if let Some(script) = &demo.script {
        run_script(&carrier, &app, replies, script).await?;
    } else {
        if let Some(bind) = console {
            show_console_link(&app, bind, demo.open).await?;
        }
        run_conversation(&carrier, &app, replies, demo.no_prompt).await?;
    }
    import_task.abort();
    app.drain_turns().await;
    listeners.close_listeners().await?;
    app.close().await;
    Ok(())
}

/// Prints a sign-in link for the console, and opens it in the browser if requested.
async fn show_console_link(app: &App, bind: SocketAddr, opens_browser: bool) -> anyhow::Result<()> {
    let link = app.db.write(|conn| auth::create_link(conn, Actor::Dialarr, Clock::System.now())).await?;
    let url = console::console_url(bind);
    eprintln!("Console at {url}; sign in with {url}{link}");
    eprintln!("The link works once, for ten minutes. Restart the demo for a new one.");
    if opens_browser && let Err(error) = open::that_detached(format!("{url}{link}")) {
        eprintln!("Could not open a browser: {error}");
    }
    Ok(())
}

/// Prints replies while lines are typed, or until a signal.
async fn run_conversation(
    carrier: &DemoCarrier,
    app: &App,
    replies: Receiver<SentMessage>,
    no_prompt: bool,
) -> anyhow::Result<()> {
    let stop_replies = CancellationToken::new();
    let output = carrier.output;
    let reply_task = match &carrier.phone {
        Some(phone) => {
            let print_text = move |text: &RadioedText| output.print_text(&text.to, &text.body);
            let texts = demo_phone::print_texts(phone.clone(), print_text, stop_replies.clone());
            tokio::spawn(async move {
                texts.await;
                Ok(())
            })
        }
        None => tokio::spawn(print_replies(carrier.clone(), replies, stop_replies.clone())),
    };
    if no_prompt {
        StopSignals::listen()?.wait_for_signal().await;
    } else {
        run_prompt(carrier).await?;
        carrier.wait_for_replies(app).await?;
    }
    // The task reports deliveries to the webhook, so it stops before the listeners.
    stop_replies.cancel();
    reply_task.await.context("print the replies")?
}

/// Listens on the default port of the console, or on any port if that one is in use.
async fn console_listener() -> anyhow::Result<TcpListener> {
    match TcpListener::bind(CONSOLE_ADDRESS).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(ANY_PORT).await.context("listen on loopback"),
    }
}

/// Simulated Twilio and the client with which it calls the webhook, or a simulated phone.
#[derive(Clone)]
struct DemoCarrier {
    twilio: FakeTwilio,
    phone: Option<FakePhone>,
    webhook: HttpClient,
    output: DemoOutput,
}

impl DemoCarrier {
    async fn send_text(&self, line: &str) -> anyhow::Result<()> {
        let DemoLine { from, body } = DemoLine::parse(line);
        if let Some(phone) = &self.phone {
            phone.receive_text(&from, body);
            return Ok(());
        }
        let request = self
            .twilio
            .inbound_form(&from, body)
            .into_signed_request()
            .context("build the webhook request")?;
        let response = FakeTwilio::deliver_request(request, &self.webhook)
            .await
            .context("send the request to the webhook")?;
        anyhow::ensure!(
            response.status().is_success(),
            "deliver the text to the webhook: {}",
            response.status()
        );
        Ok(())
    }

    /// Waits until all messages are answered and the replies are sent.
    async fn wait_for_replies(&self, app: &App) -> anyhow::Result<()> {
        if let Some(phone) = &self.phone {
            demo_phone::wait_until_read(phone).await;
        }
        app.engine.scheduler.wait_until_idle().await;
        app.relay.wait_until_settled().await?;
        if let Some(phone) = &self.phone {
            demo_phone::wait_until_read(phone).await;
        }
        Ok(())
    }

    /// Prints a reply and reports its delivery to the webhook.
    async fn print_reply(&self, sent: &SentMessage) -> anyhow::Result<()> {
        self.output.print_text(sent.to.as_str(), &sent.body);
        for delivery in [FakeDelivery::Sent, FakeDelivery::Delivered] {
            if let Some(request) =
                self.twilio.status_callback(sent, delivery).context("build the status callback")?
            {
                FakeTwilio::deliver_request(request, &self.webhook)
                    .await
                    .context("send the request to the webhook")?;
            }
        }
        Ok(())
    }
}

async fn print_replies(
    carrier: DemoCarrier,
    mut replies: Receiver<SentMessage>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    loop {
        let sent = tokio::select! {
            biased;
            sent = replies.recv() => sent,
            () = stop.cancelled() => return Ok(()),
        };
        match sent {
            Ok(sent) => carrier.print_reply(&sent).await?,
            Err(RecvError::Lagged(missed)) => eprintln!("({missed} replies were not shown)"),
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

async fn run_prompt(carrier: &DemoCarrier) -> anyhow::Result<()> {
    eprintln!("Try \"status\", \"add the lion king\" or \"remove heat\"; \"help\" shows more. Ctrl-D exits.");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut signals = StopSignals::listen()?;
    carrier.output.print_prompt();
    while let Some(line) = chat::next_line(&mut lines, &mut signals).await? {
        match line.trim() {
            "" => {}
            "help" => eprintln!("{HELP}"),
            _ => carrier.send_text(&line).await?,
        }
        carrier.output.print_prompt();
    }
    Ok(())
}

/// Sends the lines of a file as messages, each after the previous one was answered.
#[expect(clippy::print_stdout, reason = "the command prints the conversation")]
async fn run_script(
    carrier: &DemoCarrier,
    app: &App,
    mut replies: Receiver<SentMessage>,
    script: &Path,
) -> anyhow::Result<()> {
    let lines =
        tokio::fs::read_to_string(script).await.with_context(|| format!("read {}", script.display()))?;
    let mut printed = 0;
    for line in lines.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        println!("you: {line}");
        carrier.send_text(line).await?;
        carrier.wait_for_replies(app).await?;
        // All replies to the message are sent by now, so they are printed below it.
        while let Ok(sent) = replies.try_recv() {
            carrier.print_reply(&sent).await?;
        }
        if let Some(phone) = &carrier.phone {
            let texts = phone.radioed_texts();
            texts.iter().skip(printed).for_each(|text| carrier.output.print_text(&text.to, &text.body));
            printed = texts.len();
        }
    }
    Ok(())
}
