//! Texting in the setup assistant: the choice of the way, a test text by a phone of the household, and the number or bot
//! to write to.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use jiff::{SignedDuration, Timestamp};

use super::home::actions::ButtonForm;
use super::operator_name::read_phone;
use super::responses::{PageError, PageResult};
use super::settings_save::load_settings;
use super::setup_assistant::step_path;
use super::test_report::TestReport;
use crate::config::ConfigSources;
use crate::config::variables::ADMIN_PHONE;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::doctor::Finding;
use crate::doctor::connection_test::TestOutcome;
use crate::engine::operator::test_text::TestTextOutcome;
use crate::settings::setup_step::SetupStep;
use crate::settings::texting_way::TextingWay;
use crate::setup::bot_name::BotName;
use crate::store::queue::outbox::OutboxState;
use crate::store::queue::test_text::{self, TestText};
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

/// Time in which the phone usually sends the test text.
const SENDING_TIME: SignedDuration = SignedDuration::from_secs(60);
/// Time in which the reply to it usually arrives.
const REPLY_TIME: SignedDuration = SignedDuration::from_secs(120);

/// Choice of the way of texting, with what the page shows of it.
pub(super) struct TextingChoice {
    pub(super) way: TextingWay,
    pub(super) ways: Vec<WayLink>,
    /// `None` for a way without a test text.
    pub(super) test_text: Option<TestTextView>,
}

/// Link to a way of texting.
pub(super) struct WayLink {
    pub(super) label: &'static str,
    pub(super) path: String,
    pub(super) is_current: bool,
    pub(super) is_configured: bool,
}

/// Number or bot to which people write.
pub(super) enum Contact {
    /// Number with spaces.
    Number(String),
    Bot(BotName),
    /// Bot whose name is unknown, because Telegram does not respond.
    UnnamedBot,
}

/// Test text, as the page shows it.
pub(super) struct TestTextView {
    /// True if a test text can be sent: the phone and the number of the admin are configured.
    pub(super) can_send: bool,
    /// State of the newest test text.
    pub(super) report: Option<TestReport>,
    pub(super) path: String,
}

pub(in crate::web) async fn send_test_text(
    State(console): State<ConsoleState>,
    _operator: Operator,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    let settings = console.settings.as_ref().ok_or(PageError::NotFound)?;
    let (_, sources) = load_settings(settings).await?;
    let admin = read_phone(&sources, ADMIN_PHONE).ok_or(PageError::NotFound)?;
    match console.engine.decisions.queue_test_text(admin).await? {
        TestTextOutcome::Queued => Ok(Redirect::to(&way_path(TextingWay::Phone)).into_response()),
        TestTextOutcome::NoPhone | TestTextOutcome::NoRecipient => Err(PageError::NotFound),
    }
}

pub(super) fn way_path(way: TextingWay) -> String {
    format!("{}&way={}", step_path(SetupStep::Texting), way.id())
}

impl TextingChoice {
    pub(super) async fn load(
        console: &ConsoleState,
        sources: &ConfigSources,
        way: TextingWay,
    ) -> Result<Self, PageError> {
        let link = |other: TextingWay| WayLink {
            label: other.label(),
            path: way_path(other),
            is_current: other == way,
            is_configured: other.is_configured(sources),
        };
        let ways = TextingWay::ALL.into_iter().map(link).collect();
        let test_text = match way {
            TextingWay::Twilio | TextingWay::Telegram => None,
            TextingWay::Phone => Some(TestTextView::load(console, sources).await?),
        };
        Ok(Self { way, ways, test_text })
    }
}

impl Contact {
    /// Loads the contact of a way; `None` if it is not configured.
    pub(super) async fn load(
        console: &ConsoleState,
        sources: &ConfigSources,
        way: TextingWay,
    ) -> Option<Self> {
        if !way.is_configured(sources) {
            return None;
        }
        let Some(variable) = way.number_variable() else {
            let name = console.connection_tester.current().bot_name().await;
            return Some(name.map_or(Self::UnnamedBot, Self::Bot));
        };
        read_phone(sources, variable).map(|phone| Self::Number(phone.format_grouped()))
    }
}

impl TestTextView {
    async fn load(console: &ConsoleState, sources: &ConfigSources) -> Result<Self, PageError> {
        let is_configured = TextingWay::Phone.is_configured(sources);
        let newest = console.db.read(test_text::load_newest_test_text).await?;
        let now = console.clock.now();
        let report = newest.filter(|_| is_configured).map(|test| describe_test(&test, now));
        Ok(Self {
            can_send: is_configured && read_phone(sources, ADMIN_PHONE).is_some(),
            report,
            path: way_path(TextingWay::Phone),
        })
    }
}

/// Describes how far the test has come.
fn describe_test(test: &TestText, now: Timestamp) -> TestReport {
    let age = now.duration_since(test.queued_at);
    let (sending, was_sent) = describe_sending(test, age);
    let reply = was_sent.then(|| describe_reply(test, age));
    TestReport::from_outcome(TestOutcome::Finished([sending].into_iter().chain(reply).collect()))
}

/// Describes the way to the recipient, and returns whether the text was sent.
fn describe_sending(test: &TestText, age: SignedDuration) -> (Finding, bool) {
    let reason = test.reason.as_deref().unwrap_or("no reason is known");
    let not_sent = |problem: String| {
        let hint = "Check the signal, the plan of the SIM, and the app's permission to send texts";
        (Finding::failure(problem, hint), false)
    };
    match (test.state, test.delivery) {
        (OutboxState::Accepted, Some(DeliveryStatus::Delivered)) => {
            (Finding::ok("The test text was delivered"), true)
        }
        (OutboxState::Accepted, Some(DeliveryStatus::Sent)) => {
            (Finding::ok("The phone sent the test text"), true)
        }
        (OutboxState::Accepted, Some(status)) if status.has_failed() => {
            not_sent(format!("The phone took the text but did not send it: {reason}"))
        }
        (OutboxState::Failed, _) => not_sent(format!("The text was not sent: {reason}")),
        (OutboxState::Suppressed, _) => {
            let hint = "Text START to the phone, and try again";
            (Finding::failure("The text was not sent: you have opted out of texts", hint), false)
        }
        (OutboxState::Accepted, _) if age > SENDING_TIME => {
            not_sent("The phone took the text and has not sent it yet".to_owned())
        }
        (OutboxState::Accepted, _) => (Finding::ok("The phone has the test text"), false),
        (OutboxState::Queued | OutboxState::Attempting | OutboxState::Unknown, _) if age > SENDING_TIME => {
            let hint = "Check that SMS Gateway is open and online, and that Local server is on";
            (
                Finding::warning(
                    "The phone has not taken the text yet. Texts wait here, none are lost",
                    hint,
                ),
                false,
            )
        }
        (OutboxState::Queued | OutboxState::Attempting | OutboxState::Unknown, _) => {
            (Finding::ok("The text waits for the phone"), false)
        }
    }
}

fn describe_reply(test: &TestText, age: SignedDuration) -> Finding {
    if test.has_reply {
        return Finding::ok("Your reply arrived. Texting works in both directions");
    }
    if age > REPLY_TIME {
        return Finding::failure(
            "Nothing came in",
            "Turn off RCS chats on both phones, allow SMS, and turn off battery saving for the app",
        );
    }
    Finding::ok("Now reply with status, and check again after half a minute")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        state: OutboxState,
        delivery: Option<DeliveryStatus>,
        (seconds, has_reply): (i64, bool),
        expected: &str,
    ) {
        let reason = Some("Send result: RESULT_ERROR_NO_SERVICE".to_owned());
        let test = TestText { state, delivery, reason, queued_at: Timestamp::UNIX_EPOCH, has_reply };
        let report = describe_test(&test, Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds));
        let lines: Vec<String> =
            report.lines.iter().map(|line| format!("{}: {}", line.grade, line.text)).collect();
        assert_eq!(lines.join("; "), expected);
    }

    #[test]
    fn report_follows_the_test_text_and_its_reply() {
        let accepted = OutboxState::Accepted;
        check(OutboxState::Queued, None, (5, false), "ok: The text waits for the phone");
        check(
            OutboxState::Unknown,
            None,
            (61, false),
            "warning: The phone has not taken the text yet. Texts wait here, none are lost",
        );
        check(accepted, None, (5, false), "ok: The phone has the test text");
        check(accepted, None, (61, false), "failure: The phone took the text and has not sent it yet");
        check(
            accepted,
            Some(DeliveryStatus::Failed),
            (5, false),
            "failure: The phone took the text but did not send it: Send result: RESULT_ERROR_NO_SERVICE",
        );
        check(
            accepted,
            Some(DeliveryStatus::Sent),
            (70, false),
            "ok: The phone sent the test text; ok: Now reply with status, and check again after half a minute",
        );
        check(
            accepted,
            Some(DeliveryStatus::Delivered),
            (121, false),
            "ok: The test text was delivered; failure: Nothing came in",
        );
        check(
            accepted,
            Some(DeliveryStatus::Delivered),
            (121, true),
            "ok: The test text was delivered; ok: Your reply arrived. Texting works in both directions",
        );
    }
}
