//! Every page of the console without data, and with 10,000 rows and titles whose texts are hostile.

use std::path::Path;

use anyhow::Result;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::arr::fake::posters::FakePoster;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::http::install_tls;
use dialarr::simulation::{self, SimulatedPeers};
use diesel::connection::SimpleConnection;
use jiff::tz::TimeZone;

use super::{ANN, ConsoleServer, create_shots_folder};

const ROWS: &str = include_str!("../data/ten_thousand_rows.sql");

/// Posters that a faulty server may send, of which none is shown.
fn hostile_posters() -> [FakePoster; 4] {
    let script = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let redirect = FakePoster {
        status: 302,
        location: Some("http://169.254.169.254/latest/meta-data"),
        ..FakePoster::image("image/jpeg", "")
    };
    [
        FakePoster::image("image/svg+xml", script),
        FakePoster::image("image/jpeg", script),
        FakePoster::image("image/jpeg", vec![0; 50 << 20]),
        redirect,
    ]
}

async fn start_console(folder: &Path, radarr: FakeRadarr, admin: Option<&str>) -> Result<ConsoleServer> {
    let peers = SimulatedPeers::new(Clock::System, radarr, FakeSonarr::new(), "https://sms.example.org");
    let mut blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None)?;
    blueprint.admin = admin.map(PhoneNumber::parse).transpose()?;
    ConsoleServer::start(&folder.join("browser.db"), &peers, blueprint).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_without_data_say_so_at_every_width() -> Result<()> {
    let shots = create_shots_folder("target/browser-empty")?;
    install_tls();
    let folder = tempfile::tempdir()?;
    let console = start_console(folder.path(), FakeRadarr::new(), None).await?;
    let outcome = console.run_script("volume.mjs", &shots, &[("FILLED", "")]).await;
    console.stop().await?;
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_with_ten_thousand_hostile_rows_keep_their_layout() -> Result<()> {
    let shots = create_shots_folder("target/browser-full")?;
    install_tls();
    let radarr = FakeRadarr::new();
    for number in 0..10_000 {
        radarr.add(movie(&format!("<script>alert({number})</script>")).year(2000).size_gb(1.0));
    }
    let folder = tempfile::tempdir()?;
    let console = start_console(folder.path(), radarr.clone(), Some(ANN)).await?;
    console.app.db.write(|conn| conn.batch_execute(ROWS)).await?;
    let mut outcome = Ok(());
    for (number, poster) in hostile_posters().into_iter().enumerate() {
        radarr.set_poster(poster);
        // All pages once, then the page with posters for each other kind.
        let part = if number == 0 { "all" } else { "posters" };
        outcome = console.run_script("volume.mjs", &shots, &[("FILLED", part)]).await;
        if outcome.is_err() {
            break;
        }
    }
    console.stop().await?;
    outcome
}
