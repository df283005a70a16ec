//! Start page: items that need the operator, today's totals, and the latest messages.

use askama::Template;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::answers::{Asked, Id, Shown, back};
use super::fates;
use super::frame::{Frame, Place, When, page};
use super::said::{self, Said};
use super::words::{Named, called, cost, count};
use crate::conversation::transcript::User;
use crate::conversation::{deletion, text};
use crate::engine::operator::Word;
use crate::store::approvals::{Approval, Matter};
use crate::store::console::deliveries::{Delivery, Which};
use crate::store::console::figures::{self, Texts};
use crate::store::console::home::{Needs, Unknown, UnknownWhat, needs};
use crate::store::console::spending::{self, Spent};
use crate::store::console::talks::{self, LastWords, Talk, TalkState};
use crate::store::console::{NEWEST, deliveries};
use crate::store::household::Change;
use crate::store::spend::Day;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;
use crate::web::health::{Check, Report};

/// Period for which failures are shown here.
const LATELY: SignedDuration = SignedDuration::from_hours(72);
const TALKS: usize = 15;
const FAILED_TEXTS: usize = 3;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Query {
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    frame: Frame,
    paused_since: Option<When>,
    newcomers: Vec<Newcomer>,
    wishes: Vec<Wish>,
    troubles: Vec<Trouble>,
    /// True if there are failed messages beyond those in the list of problems.
    more_failed: bool,
    figures: Vec<(&'static str, String)>,
    talks: Vec<TalkLine>,
}

struct Newcomer {
    id: i64,
    name: String,
    number: String,
}

struct Wish {
    id: i64,
    who: String,
    title: String,
    size: Option<String>,
}

/// Problem to check, for which there is no button.
struct Trouble {
    what: &'static str,
    who: Option<Named>,
    /// Text of the message or the name of the conversation.
    about: String,
    why: String,
    at: Option<When>,
    path: String,
}

/// Conversation in a list.
pub(super) struct TalkLine {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) who: Named,
    pub(super) at: When,
    /// Last message and its author.
    pub(super) last: Option<(&'static str, String)>,
    pub(super) state: (&'static str, &'static str),
}

impl Home {
    fn is_calm(&self) -> bool {
        self.paused_since.is_none()
            && self.newcomers.is_empty()
            && self.wishes.is_empty()
            && self.troubles.is_empty()
    }
}

struct Read {
    needs: Needs,
    failed: Vec<Delivery>,
    today: Texts,
    spent: Spent,
    talks: Vec<Talk>,
}

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
    operator: Operator,
    Asked(query): Asked<Query>,
) -> Shown {
    let now = console.clock.now();
    let today = beginning_of_day(now, &console);
    let day = Day::of(now, &console.zone);
    let read = console.db.read(move |conn| {
        let since = now - LATELY;
        let failed = deliveries::list(conn, Which::Failed, NEWEST, FAILED_TEXTS + 1)?;
        Ok(Read {
            needs: needs(conn, since, &day, now)?,
            failed: failed.rows.into_iter().filter(|text| text.at >= since).collect(),
            today: figures::since(conn, today)?,
            spent: spending::since(conn, day.as_str())?
                .days
                .into_values()
                .fold(Spent::default(), Spent::plus),
            talks: talks::latest(conn, TALKS)?,
        })
    });
    let Read { needs, failed, today, spent, talks } = read.await?;
    let ill = console.health.ready().await;
    let wishes = needs.wishes.iter().filter_map(|(wish, about)| Wish::of(wish, about));
    Ok(page(&Home {
        frame: Frame::new(&operator, Place::Home, "Home").saying(query.said),
        paused_since: needs.paused_since.map(|at| console.when(at)),
        newcomers: needs.newcomers.iter().map(Newcomer::of).collect(),
        wishes: wishes.collect(),
        troubles: ill_health(&ill).chain(troubles(&needs, &failed, &console)).collect(),
        more_failed: failed.len() > FAILED_TEXTS,
        figures: figures_of(&today, spent),
        talks: talks.iter().map(|talk| TalkLine::of(talk, &console)).collect(),
    }))
}

/// Returns the problems that `/ready` finds.
fn ill_health(report: &Report) -> impl Iterator<Item = Trouble> {
    let trouble = |check: &Check| Trouble {
        what: "Not ready",
        who: None,
        about: check.name.to_owned(),
        why: check.detail.clone(),
        at: None,
        path: "/health-checks".to_owned(),
    };
    report.checks.iter().filter(|check| !check.ok).map(trouble)
}

fn beginning_of_day(now: Timestamp, console: &ConsoleState) -> Timestamp {
    now.to_zoned(console.zone.clone()).start_of_day().map_or(now, |day| day.timestamp())
}

fn figures_of(today: &Texts, spent: Spent) -> Vec<(&'static str, String)> {
    let number = |of: usize| count(u64::try_from(of).unwrap_or(u64::MAX));
    let mut figures = vec![
        ("Texts in", number(today.received.len())),
        ("Texts out", number(today.sent.len())),
        ("Segments", count(spent.segments)),
        ("Tokens", count(spent.tokens_in.saturating_add(spent.tokens_out))),
    ];
    if spent.cost > 0 {
        figures.push(("Cost", cost(spent.cost)));
    }
    figures
}

impl Newcomer {
    fn of(user: &User) -> Self {
        Self { id: user.id.0, name: user.name.clone().unwrap_or_default(), number: user.phone.spaced() }
    }
}

impl Wish {
    fn of(wish: &Approval, about: &User) -> Option<Self> {
        let Matter::Delete(item) = &wish.matter else { return None };
        Some(Self {
            id: wish.id,
            who: called(about),
            title: deletion::name(item),
            size: (item.fingerprint.size_bytes > 0).then(|| text::size(item.fingerprint.size_bytes)),
        })
    }
}

fn troubles(needs: &Needs, failed: &[Delivery], console: &ConsoleState) -> Vec<Trouble> {
    let unknown = needs.unknown.iter().map(|unknown| Trouble::unknown(unknown, console));
    let failed = failed.iter().take(FAILED_TEXTS).map(|text| Trouble {
        what: "A text did not arrive",
        who: Some(Named::from(&text.to)),
        about: text.body.clone(),
        why: fates::reason(text.fate, &text.why).unwrap_or_default(),
        at: Some(console.when(text.at)),
        path: "/deliveries?which=failed".to_owned(),
    });
    let broken = needs.broken.iter().map(|turn| Trouble {
        what: "A text could not be answered properly",
        who: Some(Named::from(&turn.who)),
        about: turn.name.clone(),
        why: "the conversation shows where it ended".to_owned(),
        at: Some(console.when(turn.at)),
        path: format!("/conversations/{}", turn.conversation),
    });
    let silent = needs.silent_admins.iter().map(|admin| Trouble {
        what: "An admin has opted out",
        who: None,
        about: called(admin),
        why: "they hear of nothing until they text START".to_owned(),
        at: None,
        path: format!("/users/{}", admin.id),
    });
    let suspended = needs.suspended.iter().map(|user| Trouble {
        what: "Deletions by text suspended",
        who: None,
        about: called(user),
        why: "deletions and approvals by text are suspended until tomorrow; their page can allow them again"
            .to_owned(),
        at: None,
        path: format!("/users/{}", user.id),
    });
    suspended.chain(unknown).chain(failed).chain(broken).chain(silent).collect()
}

impl Trouble {
    fn unknown(unknown: &Unknown, console: &ConsoleState) -> Self {
        let (what, about, elsewhere) = match &unknown.what {
            UnknownWhat::Text => {
                ("It is not known whether a text was taken", String::new(), "/deliveries?which=waiting")
            }
            UnknownWhat::Call(tool) => {
                ("It is not known whether a change was made", tool.replace('_', " "), "/conversations")
            }
        };
        let conversation = unknown.conversation.map(|id| format!("/conversations/{id}"));
        Self {
            what,
            who: None,
            about,
            why: "it is being looked into".to_owned(),
            at: Some(console.when(unknown.since)),
            path: conversation.unwrap_or_else(|| elsewhere.to_owned()),
        }
    }
}

impl TalkLine {
    pub(super) fn of(talk: &Talk, console: &ConsoleState) -> Self {
        let last = talk.last.as_ref().map(|last| match last {
            LastWords::Theirs(words) => ("", words.clone()),
            LastWords::Ours(words) => ("Dialarr: ", words.clone()),
        });
        Self {
            path: format!("/conversations/{}", talk.id),
            name: talk.name.clone(),
            who: Named::from(&talk.with),
            at: console.when(talk.last_activity_at),
            last,
            state: match talk.state {
                TalkState::Live => ("live", "Working"),
                TalkState::Open => ("open", "Open"),
                TalkState::Ended => ("ended", "Ended"),
            },
        }
    }
}

/// Form with only a button.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Press {}

pub(in crate::web) async fn approve_wish(
    State(console): State<ConsoleState>,
    id: Id,
    SignedForm(Press {}): SignedForm<Press>,
) -> Shown {
    Ok(back("/", settled(console.engine.approve_wish(id.0).await?, Said::WishApproved)))
}

pub(in crate::web) async fn deny_wish(
    State(console): State<ConsoleState>,
    id: Id,
    SignedForm(Press {}): SignedForm<Press>,
) -> Shown {
    Ok(back("/", settled(console.engine.deny_wish(id.0).await?, Said::WishDenied)))
}

fn settled(word: Word, done: Said) -> Said {
    match word {
        Word::Taken => done,
        Word::TooLate => Said::TooLate,
        Word::NoAdmin => Said::NoAdmin,
    }
}

pub(in crate::web) async fn resume(
    State(console): State<ConsoleState>,
    SignedForm(Press {}): SignedForm<Press>,
) -> Shown {
    Ok(match console.engine.resume_from_pause().await? {
        Change::Done => back("/", Said::PauseEnded),
        Change::WasSo => back("/", Said::NotPaused),
    })
}
