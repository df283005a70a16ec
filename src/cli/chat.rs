//! `dialarr chat`: texts from the configured admin in the terminal, with the real engine.

use anyhow::Context;
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::serve::StopSignals;
use crate::app::{App, Polling};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::store::conversation::conversations;
use crate::store::people::users;
use crate::wiring;

pub(super) async fn run_chat(config: &Config) -> anyhow::Result<()> {
    // The chat user is stored as an admin who gets notifications, so it must be a real one.
    let admin = config.people.admin.clone().context(
        "start a chat: ADMIN_PHONE is not set; hint: set it to your number, e.g. ADMIN_PHONE=+15550100123",
    )?;
    let db = wiring::open_database(config)?;
    let mut blueprint = wiring::build_blueprint(config, None)?;
    // Only the service fetches missed messages from the carrier.
    blueprint.polling = Polling::Off;
    let app = App::start(db, Clock::for_service(), blueprint).await?;
    wiring::log_configuration_warnings(config);
    eprintln!("Text Dialarr, or type \"commands\" for a list of commands. Ctrl-D exits.");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut signals = StopSignals::listen()?;
    while let Some(line) = next_line(&mut lines, &mut signals).await? {
        if !line.trim().is_empty() {
            app.engine.admission.admit_message(received_message(&admin, line)).await?;
            tokio::select! {
                () = app.engine.scheduler.wait_until_idle() => {}
                () = signals.wait_for_signal() => break,
            }
            app.relay.flush().await?;
            print_new_conversation(&app, &admin).await?;
        }
    }
    app.drain_turns().await;
    app.close().await;
    Ok(())
}

/// Prints the name of the conversation if the last message started a new one.
async fn print_new_conversation(app: &App, admin: &PhoneNumber) -> anyhow::Result<()> {
    let phone = admin.clone();
    let query = move |conn: &mut _| match users::find_user_by_phone(conn, &phone)? {
        Some(user) => conversations::load_last_lifecycle(conn, user.id),
        None => Ok(None),
    };
    if let Some(lifecycle) = app.db.read(query).await?.filter(|lifecycle| lifecycle.is_new_conversation) {
        eprintln!("(new conversation: {})", lifecycle.conversation_name);
    }
    Ok(())
}

/// Reads the next line. Returns `None` at the end of the input or on a signal.
pub(super) async fn next_line(
    lines: &mut Lines<BufReader<Stdin>>,
    signals: &mut StopSignals,
) -> anyhow::Result<Option<String>> {
    tokio::select! {
        line = lines.next_line() => line.context("read from the terminal"),
        () = signals.wait_for_signal() => Ok(None),
    }
}

fn received_message(from: &PhoneNumber, body: String) -> ReceivedMessage {
    let now = Timestamp::now();
    ReceivedMessage {
        channel: channel_list::TERMINAL,
        external_id: format!("local-{}-{:08x}", now.as_millisecond(), rand::random::<u32>()),
        from: from.into(),
        to: Address::local(),
        body,
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: now,
        received_at: now,
    }
}
