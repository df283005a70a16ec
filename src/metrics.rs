//! Prometheus metrics: counters of events since the start, and gauges of the backlog. The values of labels are closed
//! sets that contain neither users nor titles.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::conversation::channel::Channel;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::model_cost::TokenUsage;
use crate::conversation::routing::verification::VerificationOutcome;
use crate::conversation::transcript::Responder;
use crate::llm::ModelError;
use crate::store::queue::backlog::{Backlog, QueueDepth};
use crate::store::queue::outbox::{AcceptanceOutcome, OutboundKind};
use crate::store::turns::turn_lifecycle::TurnKind;
use crate::store::turns::turn_stats::{CallEnd, TurnResult, TurnStats};

/// Histogram buckets in seconds, from replies by code to the time limit of a turn.
const TURN_SECONDS_BUCKETS: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
/// Label of a tool that does not exist.
const UNKNOWN_TOOL: &str = "unknown";

type LabelPairs<const N: usize> = [(&'static str, &'static str); N];
type CounterFamily<const N: usize> = Family<LabelPairs<N>, Counter>;
type HistogramFamily = Family<LabelPairs<1>, Histogram, fn() -> Histogram>;
type SecondsGauge = Gauge<f64, AtomicU64>;

/// Metrics of the program; clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<MetricFamilies>);

struct MetricFamilies {
    registry: Registry,
    /// Names of all tools, which are the values of the tool label.
    tools: Vec<&'static str>,
    texts_received: CounterFamily<1>,
    texts_sent: CounterFamily<2>,
    segments_sent: Counter,
    text_retries: Counter,
    text_outcomes: CounterFamily<1>,
    turns: CounterFamily<2>,
    turns_resumed: CounterFamily<1>,
    turn_seconds: HistogramFamily,
    model_calls: CounterFamily<2>,
    model_tokens: CounterFamily<1>,
    model_retries: Counter,
    model_queue: ModelQueueGauges,
    tool_calls: CounterFamily<2>,
    webhook_responses: Family<[(&'static str, String); 2], Counter>,
    webhook_refusals: CounterFamily<2>,
    text_verifications: CounterFamily<1>,
    scrape_gauges: ScrapeGauges,
}

/// Gauges whose values are loaded at each scrape.
#[derive(Default)]
struct ScrapeGauges {
    texts_waiting: Gauge,
    texts_unsent: Gauge,
    turns_live: Gauge,
    oldest_waiting: SecondsGauge,
    oldest_unsent: SecondsGauge,
}

/// Gauges of the queue of model calls.
#[derive(Default)]
struct ModelQueueGauges {
    limit: Gauge,
    running: Gauge,
    waiting: Family<LabelPairs<1>, Gauge>,
}

/// Numbers of calls of the configured model by state, and their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelQueueCounts {
    pub limit: usize,
    pub running: usize,
    /// Waiting calls for which a user waits.
    pub waiting_for_users: usize,
    pub waiting_in_background: usize,
}

impl Metrics {
    /// Creates the metrics. `tools` are the names of all existing tools.
    pub fn new(tools: Vec<&'static str>, started_at: Timestamp) -> Self {
        let mut inner = MetricFamilies {
            registry: Registry::default(),
            tools,
            texts_received: Family::default(),
            texts_sent: Family::default(),
            segments_sent: Counter::default(),
            text_retries: Counter::default(),
            text_outcomes: Family::default(),
            turns: Family::default(),
            turns_resumed: Family::default(),
            turn_seconds: Family::new_with_constructor(|| Histogram::new(TURN_SECONDS_BUCKETS)),
            model_calls: Family::default(),
            model_tokens: Family::default(),
            model_retries: Counter::default(),
            model_queue: ModelQueueGauges::default(),
            tool_calls: Family::default(),
            webhook_responses: Family::default(),
            webhook_refusals: Family::default(),
            text_verifications: Family::default(),
            scrape_gauges: ScrapeGauges::default(),
        };
        inner.register_counters();
        inner.register_gauges(started_at);
        Self(Arc::new(inner))
    }

    /// Counts a received message.
    pub fn text_received(&self, channel: Channel) {
        self.0.texts_received.get_or_create(&[("channel", channel.profile().metric_label)]).inc();
    }

    /// Counts a message that was accepted for delivery, if the acceptance was not known before.
    pub fn text_accepted(&self, acceptance: AcceptanceOutcome) {
        let (kind, channel, segments) = match acceptance {
            AcceptanceOutcome::First { kind, channel, segments } => (kind, channel, segments),
            AcceptanceOutcome::Known => return,
        };
        let kind = match kind {
            OutboundKind::Reply => "reply",
            OutboundKind::ConfirmPrompt => "question",
            OutboundKind::Notice => "notice",
        };
        if channel.is_charged() {
            self.0.segments_sent.inc_by(segments.into());
        }
        let channel = channel.profile().metric_label;
        self.0.texts_sent.get_or_create(&[("kind", kind), ("channel", channel)]).inc();
    }

    /// Counts a message that the carrier rejected.
    pub fn text_refused(&self) {
        self.0.text_outcomes.get_or_create(&[("outcome", "refused")]).inc();
    }

    /// Counts the final delivery status that the carrier reports for an accepted message.
    pub fn text_delivery_ended(&self, status: DeliveryStatus) {
        let outcome = if status.has_arrived() { "delivered" } else { "undelivered" };
        self.0.text_outcomes.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Counts a repeated attempt to send a message.
    pub fn text_retried(&self) {
        self.0.text_retries.inc();
    }

    /// Counts an ended turn, with its time and its tool calls.
    pub fn turn_ended(&self, stats: &TurnStats) {
        let kind = match stats.kind {
            TurnKind::Chat => "chat",
            TurnKind::Confirm => "confirm",
            TurnKind::Deny => "deny",
            TurnKind::Command => "command",
        };
        let outcome = match stats.result {
            TurnResult::Completed => "completed",
            TurnResult::Canceled => "canceled",
            TurnResult::Failed => "failed",
        };
        match stats.run {
            1 => self.0.turns.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc(),
            _ => self.0.turns_resumed.get_or_create(&[("outcome", outcome)]).inc(),
        };
        for (part, ms) in [("model", stats.model_ms), ("tools", stats.tools_ms), ("own", stats.own_ms)] {
            self.0.turn_seconds.get_or_create(&[("part", part)]).observe(seconds_from_ms(ms));
        }
        for (tool, call_end) in &stats.calls {
            let tool = self.0.tools.iter().copied().find(|known| known == tool).unwrap_or(UNKNOWN_TOOL);
            let outcome = match call_end {
                CallEnd::Complete => "complete",
                CallEnd::AwaitingConfirmation => "held",
                CallEnd::Canceled => "canceled",
                CallEnd::Error => "error",
            };
            self.0.tool_calls.get_or_create(&[("tool", tool), ("outcome", outcome)]).inc();
        }
    }

    /// Counts a model call that returned a response; `tokens` are the counts of the model's server.
    pub fn model_answered(&self, responder: Responder, tokens: Option<TokenUsage>) {
        self.count_model_call(responder, "answered");
        let Some(TokenUsage { input, cached, output }) = tokens else { return };
        for (kind, count) in [("input", input), ("cached", cached), ("output", output)] {
            self.0.model_tokens.get_or_create(&[("kind", kind)]).inc_by(count);
        }
    }

    /// Counts a model call that failed.
    pub fn model_failed(&self, responder: Responder, error: &ModelError) {
        let outcome = match error {
            ModelError::RateLimited { .. } => "rate_limited",
            ModelError::Unavailable(_) => "unavailable",
            ModelError::Timeout => "timeout",
            ModelError::Malformed(_) => "garbled",
            ModelError::ContextTooLong => "context_too_long",
            ModelError::Unauthorized(_) => "unauthorized",
            ModelError::QuotaSpent(_) => "quota_spent",
            ModelError::Rejected(_) => "rejected",
        };
        self.count_model_call(responder, outcome);
    }

    /// Counts a model call that ended because the user canceled the turn.
    pub fn model_interrupted(&self, responder: Responder) {
        self.count_model_call(responder, "taken_back");
    }

    fn count_model_call(&self, responder: Responder, outcome: &'static str) {
        let label = match responder {
            Responder::Model => "model",
            Responder::Keyword => "keyword",
        };
        self.0.model_calls.get_or_create(&[("brain", label), ("outcome", outcome)]).inc();
    }

    /// Counts a repeated model call of a step.
    pub fn model_retried(&self) {
        self.0.model_retries.inc();
    }

    /// Records the state of the queue of model calls.
    pub fn model_queue_changed(&self, counts: ModelQueueCounts) {
        let ModelQueueGauges { limit, running, waiting } = &self.0.model_queue;
        let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        set(limit, counts.limit);
        set(running, counts.running);
        for (purpose, count) in
            [("answer", counts.waiting_for_users), ("notes", counts.waiting_in_background)]
        {
            set(&waiting.get_or_create(&[("purpose", purpose)]), count);
        }
    }

    /// Counts a response to a webhook. `webhook` is the path of the route, never the path in the request.
    pub fn webhook_answered(&self, webhook: String, status: u16) {
        let labels = [("webhook", webhook), ("status", status.to_string())];
        self.0.webhook_responses.get_or_create(&labels).inc();
    }

    /// Counts a webhook request in the carrier's name that was rejected or had no effect.
    pub fn webhook_refused(&self, webhook: &'static str, reason: &'static str) {
        self.0.webhook_refusals.get_or_create(&[("webhook", webhook), ("reason", reason)]).inc();
    }

    /// Counts the comparison of an ambiguous message with the carrier's record.
    pub fn text_verified(&self, outcome: VerificationOutcome) {
        self.0.text_verifications.get_or_create(&[("outcome", outcome.label())]).inc();
    }

    /// Renders all metrics in the text format of OpenMetrics, which Prometheus reads.
    pub fn render(&self, backlog: &Backlog, now: Timestamp) -> Result<String, fmt::Error> {
        let age = |queue: QueueDepth| {
            queue
                .oldest
                .map_or(0.0, |at| seconds_from_ms(now.as_millisecond() - at.as_millisecond()).max(0.0))
        };
        let gauges = &self.0.scrape_gauges;
        gauges.texts_waiting.set(backlog.waiting.length);
        gauges.texts_unsent.set(backlog.unsent.length);
        gauges.turns_live.set(backlog.running_turns);
        gauges.oldest_waiting.set(age(backlog.waiting));
        gauges.oldest_unsent.set(age(backlog.unsent));
        let mut text = String::new();
        encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

impl MetricFamilies {
    fn register_counters(&mut self) {
        let Self { registry, .. } = self;
        let texts = self.texts_received.clone();
        registry.register("dialarr_texts_received", "Received texts, by channel", texts);
        let texts = self.texts_sent.clone();
        let help = "Texts accepted for delivery by the carrier or shown in the console or the terminal, by kind and channel";
        registry.register("dialarr_texts_sent", help, texts);
        let segments = self.segments_sent.clone();
        registry.register("dialarr_text_segments_sent", "Segments of the texts sent by phone", segments);
        let outcomes = self.text_outcomes.clone();
        let help = "Texts by phone with a final status, by the outcome that the carrier reported";
        registry.register("dialarr_text_outcomes", help, outcomes);
        let retries = self.text_retries.clone();
        registry.register("dialarr_text_retries", "Repeated attempts to send a text", retries);
        let turns = self.turns.clone();
        registry.register("dialarr_turns", "Turns that ended, by kind and outcome", turns);
        let turns = self.turns_resumed.clone();
        let help = "Failed turns that were resumed and ended again, by outcome";
        registry.register("dialarr_turns_resumed", help, turns);
        let times = self.turn_seconds.clone();
        let help =
            "Time of a turn by part: model, tools and Dialarr itself; a resumed turn is measured separately";
        registry.register_with_unit("dialarr_turn_duration", help, Unit::Seconds, times);
        let calls = self.model_calls.clone();
        registry.register("dialarr_model_calls", "Model calls, by responder and outcome", calls);
        let tokens = self.model_tokens.clone();
        let help = "Tokens reported by the model server; the input includes the cached tokens";
        registry.register("dialarr_model_tokens", help, tokens);
        let retries = self.model_retries.clone();
        registry.register("dialarr_model_retries", "Repeated model calls of a step", retries);
        let calls = self.tool_calls.clone();
        registry.register("dialarr_tool_calls", "Tool calls of ended turns, by tool and outcome", calls);
        let responses = self.webhook_responses.clone();
        registry.register("dialarr_webhook_answers", "Responses of the webhook listener", responses);
        let refusals = self.webhook_refusals.clone();
        let help = "Webhook requests in the carrier's name that were rejected or had no effect, by reason";
        registry.register("dialarr_webhook_refusals", help, refusals);
        let verifications = self.text_verifications.clone();
        let help = "Ambiguous texts that were compared with the carrier's record before processing";
        registry.register("dialarr_text_verifications", help, verifications);
    }

    fn register_gauges(&mut self, started_at: Timestamp) {
        let Self { registry, scrape_gauges, model_queue, .. } = self;
        let waiting = scrape_gauges.texts_waiting.clone();
        registry.register("dialarr_texts_waiting", "Received texts that wait for a turn", waiting);
        let unsent = scrape_gauges.texts_unsent.clone();
        registry.register("dialarr_texts_unsent", "Texts that are due for sending", unsent);
        registry.register("dialarr_turns_live", "Running turns", scrape_gauges.turns_live.clone());
        let limit = model_queue.limit.clone();
        registry.register("dialarr_model_calls_limit", "Limit of concurrent model calls", limit);
        let running = model_queue.running.clone();
        registry.register("dialarr_model_calls_running", "Running model calls", running);
        let waiting = model_queue.waiting.clone();
        registry.register(
            "dialarr_model_calls_waiting",
            "Model calls that wait for a slot, by purpose",
            waiting,
        );
        let oldest = scrape_gauges.oldest_waiting.clone();
        let help = "Age of the oldest received text that waits for a turn";
        registry.register_with_unit("dialarr_oldest_text_waiting", help, Unit::Seconds, oldest);
        let oldest = scrape_gauges.oldest_unsent.clone();
        let help = "Age of the oldest text that is due for sending";
        registry.register_with_unit("dialarr_oldest_text_unsent", help, Unit::Seconds, oldest);
        let started = SecondsGauge::default();
        started.set(seconds_from_ms(started_at.as_millisecond()));
        let help = "Start time of the program since the Unix epoch";
        registry.register_with_unit("process_start_time", help, Unit::Seconds, started);
        let build = Info::new([("version", env!("DIALARR_VERSION"))]);
        registry.register("dialarr_build", "Version of the program", build);
    }
}

#[expect(clippy::cast_precision_loss, reason = "f64 is exact to the millisecond for thousands of years")]
fn seconds_from_ms(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
