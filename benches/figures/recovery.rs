//! Time until the program has restarted and answered, after a crash with 10,000 open messages.

use std::time::{Duration, Instant};

use dialarr::clock::Clock;
use dialarr::conversation::channel_list;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::{Address, PhoneNumber};
use dialarr::store::database::db::Db;
use dialarr::store::queue::inbound_messages::{self, DebouncePolicy};

use super::ledger::count;
use super::print_line;
use super::stage::{Stage, wait_for};
use super::usage::memory;

const PEOPLE: u32 = 1_000;
const TEXTS_EACH: u32 = 10;

pub(crate) async fn measure() {
    let phones: Vec<String> = (0..PEOPLE).map(|place| format!("+15550{place:06}")).collect();
    let stage = Stage::open(&phones, Duration::ZERO).await;
    fill(&stage, &phones).await;
    let start = Instant::now();
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    let ready = start.elapsed();
    wait_for("the first answer", async || !stage.twilio.sent_messages().is_empty()).await;
    let first = start.elapsed();
    let open = "SELECT count(*) AS n FROM inbound_events WHERE outcome IS NULL";
    wait_for("every answer", async || count(&stage, open) == 0).await;
    let answered = start.elapsed();
    let waiting = "SELECT count(*) AS n FROM outbox WHERE state <> 'accepted'";
    wait_for("every text to be sent", async || count(&stage, waiting) == 0).await;
    print_line(&format!(
        "10,000 open texts of {PEOPLE} people: ready after {:.2} s, first answer sent after {:.2} s, all answered \
         after {:.1} s, all {} answers sent after {:.1} s, {:.1} MiB at most",
        ready.as_secs_f64(),
        first.as_secs_f64(),
        answered.as_secs_f64(),
        stage.twilio.sent_messages().len(),
        start.elapsed().as_secs_f64(),
        memory(&running).1
    ));
}

/// Stores messages just before the end, without processing.
async fn fill(stage: &Stage, phones: &[String]) {
    let phones: Vec<PhoneNumber> = phones.iter().map(|phone| PhoneNumber::parse(phone).unwrap()).collect();
    let db = Db::open(stage.database().to_str().unwrap()).unwrap();
    let now = Clock::System.now();
    let admit = move |conn: &mut _| {
        for text in 0..TEXTS_EACH {
            for (place, phone) in phones.iter().enumerate() {
                let received = ReceivedMessage {
                    channel: channel_list::TWILIO,
                    external_id: format!("SM{:032x}", u64::from(text) << 32 | place as u64),
                    from: phone.into(),
                    to: Address::new("+15550100000"),
                    body: "what is downloading".to_owned(),
                    media: Vec::new(),
                    via: MessageSource::Webhook,
                    authority: FieldAuthority::Certain,
                    carrier_word: None,
                    pressed: None,
                    room: None,
                    provider_at: now,
                    received_at: now,
                };
                inbound_messages::admit_message(
                    conn,
                    &received,
                    DebouncePolicy { quiet_ms: 0, max_delay_ms: 0 },
                )?;
            }
        }
        Ok(())
    };
    db.write(admit).await.unwrap();
    db.close().await;
}
