//! Logging: destination, format and filter of log lines, which never quote users.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::iter;

use anyhow::Context;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt, ParseError, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Log filter if the operator configures no other.
pub const DEFAULT_FILTER: &str =
    "info,async_openai=off,h2=warn,hyper=warn,hyper_util=warn,reqwest=warn,rmcp=off,rustls=warn";

/// Format and filter of log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    pub format: LogFormat,
    /// Valid directives of `tracing-subscriber`.
    pub filter: String,
}

/// Layout of a log line on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Pretty,
    Json,
}

/// Starts logging to standard error for the whole process. Standard output is used by the commands.
pub fn start_logging(log: &LogSettings) -> anyhow::Result<()> {
    let subscriber = build_subscriber(log).context("read the log filter")?;
    subscriber.try_init().context("start logging")
}

/// Formats an error with all its causes on one line, as anyhow does with `{:#}`.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Parses the operator's filter directives.
pub fn parse_filter(directives: &str) -> Result<Targets, ParseError> {
    directives.parse()
}

fn build_subscriber(log: &LogSettings) -> Result<impl Subscriber + Send + Sync + use<>, ParseError> {
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match log.format {
        LogFormat::Pretty => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    Ok(Registry::default().with(lines.with_filter(parse_filter(&log.filter)?.and(filter_fn(quotes_no_user)))))
}

/// Returns whether a log line quotes no user. async-openai logs responses that it cannot parse, which may quote
/// messages, and rmcp logs what it refuses of an agent.
fn quotes_no_user(metadata: &Metadata<'_>) -> bool {
    !["async_openai", "rmcp"].iter().any(|quoting| metadata.target().starts_with(quoting))
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;
    use tracing::{Level, enabled};

    use super::{DEFAULT_FILTER, LogFormat, LogSettings, build_subscriber};

    #[track_caller]
    fn check(directives: &str, is_logged: impl FnOnce() -> bool, expected: bool) {
        let log = LogSettings { format: LogFormat::Json, filter: directives.to_owned() };
        let logged = with_default(build_subscriber(&log).unwrap(), is_logged);
        assert_eq!(logged, expected, "{directives}");
    }

    #[test]
    fn default_filter_logs_own_events_and_http_warnings() {
        check(DEFAULT_FILTER, || enabled!(target: "dialarr", Level::INFO), true);
        check(DEFAULT_FILTER, || enabled!(target: "hyper_util", Level::INFO), false);
        check(DEFAULT_FILTER, || enabled!(target: "hyper_util", Level::WARN), true);
    }

    #[test]
    fn operator_can_enable_debug_logs() {
        check("dialarr=debug", || enabled!(target: "dialarr::engine", Level::DEBUG), true);
    }

    #[test]
    fn model_client_never_logs_message_texts() {
        check("async_openai=trace", || enabled!(target: "async_openai", Level::ERROR), false);
        check("async_openai::error=trace", || enabled!(target: "async_openai::error", Level::ERROR), false);
        check("trace", || enabled!(target: "async_openai::client", Level::ERROR), false);
    }
}
