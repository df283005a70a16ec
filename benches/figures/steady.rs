//! Memory over an hour of messages at a steady rate, as in a large busy household.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::people::{Person, UserRequest};
use super::print_line;
use super::stage::Stage;
use super::usage::memory;

const PEOPLE: usize = 50;
const HOUR: Duration = Duration::from_secs(3_600);
/// Interval between two messages of any users.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between two memory measurements.
const MEASURE_INTERVAL: Duration = Duration::from_secs(300);

pub(crate) async fn measure() {
    let phones: Vec<String> = (0..PEOPLE).map(|place| format!("+155501002{place:02}")).collect();
    let stage = Arc::new(Stage::open(&phones, Duration::ZERO).await);
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    print_line(&format!("resident at the start: {:.1} MiB", memory(&running).0));
    let start = Instant::now();
    let people: Vec<_> = phones
        .iter()
        .enumerate()
        .map(|(place, phone)| {
            let mut person = Person::new(&stage, phone);
            tokio::spawn(async move {
                let mut texts = 0;
                tokio::time::sleep(MESSAGE_INTERVAL * u32::try_from(place).unwrap()).await;
                let mut beat = tokio::time::interval(MESSAGE_INTERVAL * u32::try_from(PEOPLE).unwrap());
                while start.elapsed() < HOUR {
                    beat.tick().await;
                    person.make_request(UserRequest::Look).await;
                    person.diary.clear();
                    texts += 1;
                }
                texts
            })
        })
        .collect();
    while start.elapsed() < HOUR {
        tokio::time::sleep(MEASURE_INTERVAL).await;
        let (resident, most) = memory(&running);
        print_line(&format!(
            "after {:.0} minutes: {resident:.1} MiB resident, {most:.1} at most",
            start.elapsed().as_secs_f64() / 60.0
        ));
    }
    let mut texts = 0;
    for person in people {
        texts += person.await.unwrap();
    }
    print_line(&format!("{texts} texts in {:.0} minutes", start.elapsed().as_secs_f64() / 60.0));
}
