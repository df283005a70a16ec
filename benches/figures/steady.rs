//! Memory over an hour in which texts come one after the other, as steadily as they would in a busy house of many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::people::{Person, UserRequest};
use super::stage::Stage;
use super::tell;
use super::usage::memory;

const PEOPLE: usize = 50;
const HOUR: Duration = Duration::from_secs(3_600);
/// Between two texts, whoever sends them.
const BEAT: Duration = Duration::from_millis(200);
/// Between two looks at the memory.
const LOOK: Duration = Duration::from_secs(300);

pub(crate) async fn measure() {
    let phones: Vec<String> = (0..PEOPLE).map(|place| format!("+155501002{place:02}")).collect();
    let stage = Arc::new(Stage::open(&phones, Duration::ZERO).await);
    let mut running = stage.start(None);
    stage.ready(&mut running).await;
    tell(&format!("resident at the start: {:.1} MiB", memory(&running).0));
    let start = Instant::now();
    let people: Vec<_> = phones
        .iter()
        .enumerate()
        .map(|(place, phone)| {
            let mut person = Person::new(&stage, phone);
            tokio::spawn(async move {
                let mut texts = 0;
                tokio::time::sleep(BEAT * u32::try_from(place).unwrap()).await;
                let mut beat = tokio::time::interval(BEAT * u32::try_from(PEOPLE).unwrap());
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
        tokio::time::sleep(LOOK).await;
        let (resident, most) = memory(&running);
        tell(&format!(
            "after {:.0} minutes: {resident:.1} MiB resident, {most:.1} at most",
            start.elapsed().as_secs_f64() / 60.0
        ));
    }
    let mut texts = 0;
    for person in people {
        texts += person.await.unwrap();
    }
    tell(&format!("{texts} texts in {:.0} minutes", start.elapsed().as_secs_f64() / 60.0));
}
