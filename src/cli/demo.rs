//! `dialarr demo`: Dialarr on loopback with simulated Sonarr, Radarr, Jellyfin, TMDB and Twilio. Each typed line is delivered as a
//! signed webhook, and each reply is sent through the REST API of the simulated Twilio.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use tokio::net::TcpListener;

use super::demo_catalog;
use super::demo_conversation::{DemoCarrier, run_conversation, run_script};
use super::demo_imports::DemoImports;
use super::demo_output::DemoOutput;
use super::listeners::BoundSockets;
use super::{DemoArguments, console, demo_phone, demo_playback, demo_setup};
use crate::access_rules::TrustedProxies;
use crate::app::App;
use crate::arr::fake::demo_library::create_demo_servers;
use crate::clock::Clock;
use crate::conversation::transcript::PhoneNumber;
use crate::http::HttpClient;
use crate::simulation::{self, SimulatedPeers};
use crate::store::audit::Actor;
use crate::store::database::db::Db;
use crate::store::demo_history;
use crate::web::auth;

/// Number of the demo admin.
pub(super) const ADMIN_PHONE: &str = "+15550100101";
pub(super) const ANY_PORT: (&str, u16) = ("127.0.0.1", 0);
const CONSOLE_ADDRESS: (&str, u16) = ("127.0.0.1", 3001);

pub(super) async fn run_demo(demo: &DemoArguments) -> anyhow::Result<()> {
    if demo.setup {
        return demo_setup::run_setup_demo(demo).await;
    }
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
    let (peers, mirror) = demo_playback::create_jellyfin(demo_catalog::create_tmdb(peers));
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
    demo_playback::link_people(&app).await.context("link the accounts of the demo")?;
    let listeners = bound.start_serving(&app, TrustedProxies::default());
    let output = DemoOutput::new(demo);
    let imports = DemoImports::new(&peers, HttpClient::network()?, address, secret).shown_by(mirror);
    let import_task = tokio::spawn(imports.run());
    let carrier = DemoCarrier {
        twilio: peers.twilio.clone(),
        phone,
        webhook: HttpClient::network()?,
        output,
        invitation: "Try \"status\", \"add the lion king\" or \"remove heat\"; \"help\" shows more. Ctrl-D exits.",
        refusal_hint: "Try it again.",
    };
    let replies = peers.twilio.subscribe();
    let channel = if demo.phone { "a phone" } else { "Twilio" };
    eprintln!(
        "Dialarr demo: simulated Sonarr, Radarr, Jellyfin, TMDB and {channel}; nothing leaves this machine."
    );
    eprintln!("Webhooks at http://{address}; no model: a grammar reads the texts.");
    eprintln!("An added title is imported after 20 seconds.");
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
pub(super) async fn show_console_link(
    app: &App,
    bind: SocketAddr,
    opens_browser: bool,
) -> anyhow::Result<()> {
    let link = app.db.write(|conn| auth::create_link(conn, Actor::Dialarr, Clock::System.now())).await?;
    let url = console::console_url(bind);
    eprintln!("Console at {url}; sign in with {url}{link}");
    eprintln!("The link works once, for ten minutes. Restart the demo for a new one.");
    if opens_browser && let Err(error) = open::that_detached(format!("{url}{link}")) {
        eprintln!("Could not open a browser: {error}");
    }
    Ok(())
}

/// Listens on the default port of the console, or on any port if that one is in use.
pub(super) async fn console_listener() -> anyhow::Result<TcpListener> {
    match TcpListener::bind(CONSOLE_ADDRESS).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(ANY_PORT).await.context("listen on loopback"),
    }
}
