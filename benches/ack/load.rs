//! Signed webhooks of unknown users at full speed, and their results.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use dialarr::messaging::twilio::WEBHOOK_PATH;
use dialarr::messaging::twilio::signature::{SIGNATURE_HEADER, sign_form};
use dialarr::simulation::OUR_NUMBER;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;

use crate::variants::{PUBLIC_URL, token};

/// Number of messages prepared before the measurement; a round ends early when they are used up.
pub(crate) const TEXTS: usize = 60_000;

pub(crate) struct Load {
    pub(crate) per_second: f64,
    p50: Duration,
    p99: Duration,
    refused: usize,
}

impl Load {
    /// Median of each figure, and the sum of the refused messages.
    pub(crate) fn median(loads: &[Self]) -> Self {
        let middle = |mut figures: Vec<f64>| {
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or_default()
        };
        let middle_time = |of: fn(&Self) -> Duration| {
            Duration::from_secs_f64(middle(loads.iter().map(|load| of(load).as_secs_f64()).collect()))
        };
        Self {
            per_second: middle(loads.iter().map(|load| load.per_second).collect()),
            p50: middle_time(|load| load.p50),
            p99: middle_time(|load| load.p99),
            refused: loads.iter().map(|load| load.refused).sum(),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(f, "{:>6.0} /s  p50 {:>6.2} ms  p99 {:>6.2} ms", self.per_second, ms(self.p50), ms(self.p99))?;
        if self.refused > 0 { write!(f, "  {} refused", self.refused) } else { Ok(()) }
    }
}

/// Measurements of one sender.
#[derive(Default)]
struct Seen {
    times: Vec<Duration>,
    refused: usize,
}

pub(crate) struct Text {
    pub(crate) form: String,
    pub(crate) signature: String,
}

pub(crate) async fn run(url: &str, concurrent: usize, round: Duration) -> Result<Load> {
    let texts: Arc<Vec<Text>> = Arc::new((0..TEXTS).map(text).collect());
    let client = reqwest::Client::new();
    let next = Arc::new(AtomicUsize::new(0));
    let url = format!("{url}{WEBHOOK_PATH}");
    let start = Instant::now();
    let senders: Vec<_> = (0..concurrent)
        .map(|_| {
            let (client, texts, next, url) = (client.clone(), texts.clone(), next.clone(), url.clone());
            tokio::spawn(async move {
                let mut seen = Seen::default();
                while start.elapsed() < round
                    && let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let sent = Instant::now();
                    match post(&client, &url, text).await? {
                        StatusCode::OK => seen.times.push(sent.elapsed()),
                        _ => seen.refused += 1,
                    }
                }
                anyhow::Ok(seen)
            })
        })
        .collect();
    let mut all = Seen::default();
    for sender in senders {
        let seen = sender.await??;
        all.times.extend(seen.times);
        all.refused += seen.refused;
    }
    let took = start.elapsed();
    all.times.sort_unstable();
    let at = |percent: usize| all.times.get(all.times.len() * percent / 100).copied().unwrap_or_default();
    let per_second = all.times.len() as f64 / took.as_secs_f64();
    Ok(Load { per_second, p50: at(50), p99: at(99), refused: all.refused })
}

async fn post(client: &reqwest::Client, url: &str, text: &Text) -> reqwest::Result<StatusCode> {
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")
        .header(SIGNATURE_HEADER, &text.signature)
        .body(text.form.clone());
    let answer = request.send().await?;
    let status = answer.status();
    // A connection is reused only after its response was read completely.
    answer.bytes().await?;
    Ok(status)
}

/// Returns the form that a carrier posts, from a different user for each number.
pub(crate) fn text(number: usize) -> Text {
    let (sid, from) = (format!("SM{number:032x}"), format!("+1555{number:07}"));
    let fields = [
        ("ToCountry", "US"),
        ("ToState", "CA"),
        ("SmsMessageSid", sid.as_str()),
        ("NumMedia", "0"),
        ("ToCity", ""),
        ("FromZip", "94107"),
        ("SmsSid", &sid),
        ("FromState", "CA"),
        ("SmsStatus", "received"),
        ("FromCity", "SAN FRANCISCO"),
        ("Body", "is there anything good on tonight?"),
        ("FromCountry", "US"),
        ("To", OUR_NUMBER),
        ("ToZip", ""),
        ("NumSegments", "1"),
        ("MessageSid", &sid),
        ("AccountSid", "AC00000000000000000000000000000000"),
        ("From", &from),
        ("ApiVersion", "2010-04-01"),
    ];
    let fields: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&fields).finish();
    Text { form, signature: sign_form(&token(), &format!("{PUBLIC_URL}{WEBHOOK_PATH}"), &fields) }
}
