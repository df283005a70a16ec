//! `dialarr demo --setup`: the service with nothing configured, and simulated Sonarr, Radarr and Twilio on loopback that the
//! setup assistant can connect.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use secrecy::ExposeSecret;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::DemoArguments;
use super::demo::{ADMIN_PHONE, ANY_PORT, console_listener, show_console_link};
use super::demo_conversation::{DemoCarrier, run_conversation};
use super::demo_output::DemoOutput;
use super::serve::RunningProgram;
use crate::app::App;
use crate::arr::fake::demo_library::create_demo_servers;
use crate::clock::Clock;
use crate::config::{Config, ConfigSources};
use crate::conversation::transcript::Address;
use crate::http::HttpClient;
use crate::messaging::twilio::fake::{FakeAccount, FakeTwilio};
use crate::simulation::{ACCOUNT, OUR_NUMBER};
use crate::web::http_server::{ListenerLimits, serve_sockets};

pub(super) async fn run_setup_demo(demo: &DemoArguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("create a folder for the demo database")?;
    let twilio_api = TcpListener::bind(ANY_PORT).await.context("listen on loopback")?;
    // The service binds the address itself.
    let console = console_listener().await?.local_addr()?;
    let sources = empty_sources(folder.path(), twilio_api.local_addr()?, console);
    let config = Config::from_sources(&sources)?;
    let mut service = RunningProgram::start(sources, config).await?;

    let account = FakeAccount {
        account_sid: ACCOUNT.to_owned(),
        auth_token: format!("{:032x}", rand::random::<u128>()).into(),
        number: Address::new(OUR_NUMBER),
        public_url: format!("http://{}", service.webhooks),
    };
    let twilio = FakeTwilio::new(account.clone(), Clock::System);
    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let stop = CancellationToken::new();
    let serve = |listener, router| {
        tokio::spawn(serve_sockets(listener, router, ListenerLimits::CONSOLE, stop.clone()));
    };
    serve(twilio_api, twilio.router());
    let mut servers = Vec::new();
    for (name, router, key) in [
        ("Radarr", radarr.router(), radarr.api_key().to_owned()),
        ("Sonarr", sonarr.router(), sonarr.api_key().to_owned()),
    ] {
        let listener = TcpListener::bind(ANY_PORT).await.context("listen on loopback")?;
        servers.push(format!("{name}: URL http://{}, API key {key}", listener.local_addr()?));
        serve(listener, router);
    }
    print_values(&account, &servers);
    show_console_link(&service.app, console, demo.open).await?;

    let output = DemoOutput::new(demo);
    let carrier = DemoCarrier {
        twilio,
        phone: None,
        webhook: HttpClient::network()?,
        output,
        invitation: "Once the assistant has finished, lines that you type here are texts from your number, such as \
                     \"status\". Ctrl-D exits.",
        refusal_hint: "Finish the assistant first, with the values above.",
    };
    let replies = carrier.twilio.subscribe();
    service
        .run_until(async |app: &App| run_conversation(&carrier, app, replies, demo.no_prompt).await)
        .await??;
    stop.cancel();
    service.close().await
}

/// Returns the sources of a service without any settings, except for its addresses and that of the simulated Twilio.
fn empty_sources(folder: &Path, twilio_api: SocketAddr, console: SocketAddr) -> ConfigSources {
    let database = folder.join("demo.db").display().to_string();
    let values = [
        ("HOST", "127.0.0.1".to_owned()),
        ("PORT", "0".to_owned()),
        ("CONSOLE_BIND", console.to_string()),
        ("DATABASE_URL", database),
        ("TWILIO_API_URL", format!("http://{twilio_api}")),
    ];
    ConfigSources::from_environment(values.map(|(name, value)| (name.to_owned(), value)))
}

fn print_values(account: &FakeAccount, servers: &[String]) {
    eprintln!(
        "Dialarr demo of the setup: nothing is configured. Sonarr, Radarr and Twilio are simulated here."
    );
    eprintln!("Enter these values in the assistant:");
    eprintln!("  Your number: {ADMIN_PHONE}");
    for server in servers {
        eprintln!("  {server}");
    }
    eprintln!("  Model: none");
    eprintln!("  Twilio: account {}, auth token {}", account.account_sid, account.auth_token.expose_secret());
    eprintln!("  Twilio: number {OUR_NUMBER}, public URL {}", account.public_url);
}
