//! `dialarr chat`: a conversation in the terminal with the real engine, as the configured admin.

use anyhow::Context;
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::serve::StopSignals;
use crate::app::App;
use crate::config::Config;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, ChannelKind, PhoneNumber};
use crate::store::conversation::conversations;
use crate::store::people::users;
use crate::wiring;

pub(super) async fn run_chat(config: &Config) -> anyhow::Result<()> {
    // The chat user stays in the database, with an admin's rights and notifications, so no made-up user is created.
    let admin = config.people.admin.clone().context(
        "talk as the admin: ADMIN_PHONE is not set; hint: set it to your number, e.g. ADMIN_PHONE=+15550100123",
    )?;
    let mut blueprint = wiring::build_blueprint(config)?;
    // The service fetches the messages that it missed; in this command only the terminal sends messages.
    blueprint.missed_messages = None;
    let app = App::start(blueprint).await?;
    wiring::log_configuration_warnings(config);
    eprintln!("Talk to Dialarr. Ctrl-D ends, \"commands\" tells what you can say.");
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

/// Prints a note below a reply that began a conversation.
async fn print_new_conversation(app: &App, admin: &PhoneNumber) -> anyhow::Result<()> {
    let phone = admin.clone();
    let look = move |conn: &mut _| match users::find_user_by_phone(conn, &phone)? {
        Some(user) => conversations::load_last_lifecycle(conn, user.id),
        None => Ok(None),
    };
    if let Some(lifecycle) = app.db.read(look).await?.filter(|lifecycle| lifecycle.is_new_conversation) {
        eprintln!("(new conversation: {})", lifecycle.conversation_name);
    }
    Ok(())
}

/// Reads the next line; `None` at the end of the input or on a signal.
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
        channel: ChannelKind::Local,
        external_id: format!("local-{}-{:08x}", now.as_millisecond(), rand::random::<u32>()),
        from: from.clone(),
        to: Address::local(),
        body,
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: now,
        received_at: now,
    }
}
