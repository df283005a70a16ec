//! Many users at once, with a model that takes 0.3 s for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dialarr::conversation::model_request::ModelRequest;
use dialarr::conversation::transcript::StopReason;
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse};
use dialarr::store::queue::backlog::load_backlog;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::harness::world::World;

const USERS: usize = 64;

/// Model server that responds after 0.3 s, and rejects calls above a number of concurrent calls.
struct LoadedModel {
    capacity: usize,
    running: AtomicUsize,
    rejected: AtomicUsize,
}

impl LoadedModel {
    fn with_capacity(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, running: AtomicUsize::new(0), rejected: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Model for LoadedModel {
    fn name(&self) -> &str {
        "loaded"
    }

    async fn next_response(&self, _: &ModelRequest, _: DeltaSink<'_>) -> Result<ModelResponse, ModelError> {
        let is_accepted = self.running.fetch_add(1, Ordering::Relaxed) < self.capacity;
        if is_accepted {
            let response_time = std::future::pending::<()>();
            let _ = tokio::time::timeout(Duration::from_millis(300), response_time).await;
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        if !is_accepted {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return Err(ModelError::RateLimited { retry_after: None });
        }
        let (text, thinking) = ("Fine.".to_owned(), String::new());
        let (calls, stop) = (Vec::new(), StopReason::Done);
        Ok(ModelResponse { text, thinking, calls, stop, usage: None, response_id: None })
    }
}

/// Program with 64 members.
struct Crowd {
    world: World,
    phones: Vec<String>,
}

impl Crowd {
    async fn start(model: Arc<LoadedModel>) -> Self {
        let world = World::start_with(model).await;
        let phones: Vec<String> = (0..USERS).map(|user| format!("+1555020{user:04}")).collect();
        for phone in &phones {
            world.register_user(phone).await;
        }
        Self { world, phones }
    }

    /// Sends a message from every user, and returns the time until all are answered.
    async fn exchange(&self) -> Duration {
        let (started_at, answered) = (Instant::now(), self.answers());
        let forms = self.phones.iter().map(|phone| self.world.twilio().inbound_form(phone, "how are you?"));
        let requests = forms.map(|form| self.world.deliver(form.into_signed_request().unwrap()));
        assert_eq!(join_all(requests).await, [200; USERS]);
        while self.answers() < answered + USERS {
            self.world.pass_ms(5).await;
            assert!(started_at.elapsed() < Duration::from_secs(120), "{} answers", self.answers());
        }
        started_at.elapsed()
    }

    fn answers(&self) -> usize {
        self.world.sent_texts().iter().filter(|text| text.ends_with("Fine.")).count()
    }

    /// Returns the current limit of concurrent calls.
    async fn limit(&self) -> usize {
        let now = self.world.now();
        let backlog = self.world.read_database(move |conn| load_backlog(conn, now)).await;
        let metrics = self.world.console().metrics.render(&backlog, now).unwrap();
        let limit = metrics.lines().find_map(|line| line.strip_prefix("dialarr_model_calls_limit ")).unwrap();
        limit.parse().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn sixty_four_users_get_sixty_answers_per_second() {
    let crowd = Crowd::start(LoadedModel::with_capacity(usize::MAX)).await;
    for _ in 0..4 {
        crowd.exchange().await;
    }
    assert_eq!(crowd.limit().await, 64);
    let mut time = Duration::ZERO;
    for _ in 0..4 {
        time += crowd.exchange().await;
    }
    let answers_per_second = (4 * USERS) as f64 / time.as_secs_f64();
    assert!(answers_per_second >= 60.0, "{answers_per_second}");
}

#[tokio::test(start_paused = true)]
async fn limit_stays_near_the_capacity_of_a_server_that_rejects_calls() {
    let model = LoadedModel::with_capacity(10);
    let crowd = Crowd::start(model.clone()).await;
    for _ in 0..4 {
        crowd.exchange().await;
    }
    let limit = crowd.limit().await;
    assert!((4..=11).contains(&limit), "{limit}");
    let rejected = model.rejected.load(Ordering::Relaxed);
    assert!((1..=40).contains(&rejected), "{rejected}");
}
