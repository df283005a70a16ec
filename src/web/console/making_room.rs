//! Page of what could go to make room: the open proposal with its answers, the kept titles, and what would be proposed now.

use askama::Template;
use axum::extract::State;

use super::format::UserLink;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::PageResult;
use crate::conversation::making_room::proposal::Candidate;
use crate::conversation::making_room::{ProposedTitle, SilenceRule, messages};
use crate::conversation::text::message_format::format_size;
use crate::conversation::text::title::format_title;
use crate::store::console::making_room::{AnsweredTitle, OpenProposal, SpaceOverview, load_space_overview};
use crate::store::library::kept_titles::KeptTitle;
use crate::store::library::space_proposals::{ProposalAnswer, ProposalPhase, ProposedTitleState};
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

/// Maximum number of rows of each list.
const MAX_ROWS: usize = 50;

#[derive(Template)]
#[template(path = "making_room.html")]
struct MakingRoomPage {
    layout: PageLayout,
    proposal: Option<ProposalView>,
    kept: Vec<KeptLine>,
    candidates: Vec<TitleLine>,
    /// Sentence about a server that does not answer.
    failure: Option<String>,
}

struct ProposalView {
    /// Sentence about the phase.
    phase: &'static str,
    until: Option<DisplayTime>,
    silence: &'static str,
    titles: Vec<ProposedLine>,
}

struct ProposedLine {
    title: TitleLine,
    state: &'static str,
    class: &'static str,
    answers: Vec<(UserLink, &'static str)>,
}

struct TitleLine {
    name: String,
    size: String,
    reason: String,
}

struct KeptLine {
    name: String,
    user: UserLink,
    until: DisplayTime,
}

pub(in crate::web) async fn show_making_room(
    State(console): State<ConsoleState>,
    operator: Operator,
) -> PageResult {
    let now = console.clock.now();
    let overview = console.db.read(move |conn| load_space_overview(conn, now)).await?;
    let (candidates, failure) = match console.engine.library.find_space_candidates().await? {
        Ok(candidates) => (candidates, None),
        Err(failure) => (Vec::new(), failure.for_user),
    };
    let layout = PageLayout::new(&operator, ConsoleSection::Library, "Make room");
    Ok(render_page(&MakingRoomPage::build(layout, overview, (&candidates, failure), &console)))
}

impl MakingRoomPage {
    fn build(
        layout: PageLayout,
        overview: SpaceOverview,
        (candidates, failure): (&[Candidate], Option<String>),
        console: &ConsoleState,
    ) -> Self {
        let title_line =
            |candidate: &Candidate| TitleLine::new(&candidate.title, format_reason(candidate, console));
        let kept_line = |(user, kept): (_, KeptTitle)| KeptLine {
            name: format_title(&kept.title, kept.year),
            user: UserLink::from(&user),
            until: console.display_time(kept.kept_until),
        };
        Self {
            layout,
            proposal: overview.open.map(|open| ProposalView::from_proposal(open, console)),
            kept: overview.kept.into_iter().take(MAX_ROWS).map(kept_line).collect(),
            candidates: candidates.iter().take(MAX_ROWS).map(title_line).collect(),
            failure,
        }
    }
}

impl ProposalView {
    fn from_proposal(open: OpenProposal, console: &ConsoleState) -> Self {
        let OpenProposal { proposal, titles } = open;
        let (phase, until) = match proposal.phase {
            ProposalPhase::Asking => ("The people concerned can answer until", Some(proposal.answers_end_at)),
            ProposalPhase::Review => ("An admin can text REVIEW to decide until", proposal.review_ends_at),
            ProposalPhase::Closed => ("Closed", None),
        };
        Self {
            phase,
            until: until.map(|at| console.display_time(at)),
            silence: match proposal.silence {
                SilenceRule::Stays => "Without an answer, a title stays.",
                SilenceRule::MayGo => "Without an answer, a title may go.",
            },
            titles: titles.into_iter().map(|title| ProposedLine::from_title(title, console)).collect(),
        }
    }
}

impl ProposedLine {
    fn from_title(answered: AnsweredTitle, console: &ConsoleState) -> Self {
        let AnsweredTitle { title, answers } = answered;
        let (state, class) = match title.state {
            ProposedTitleState::Asked => ("Asked", ""),
            ProposedTitleState::Stays => ("Stays", "good"),
            ProposedTitleState::MayGo => ("May go", "warn"),
            ProposedTitleState::Deleted => ("Deleted", ""),
        };
        let (zone, now) = (console.zone(), console.clock.now());
        let reason = messages::format_reason(title.reason, title.last_played_at, (now, &zone));
        let answer_label = |answer: Option<ProposalAnswer>| match answer {
            None => "no answer",
            Some(ProposalAnswer::Keep) => "keeps it",
            Some(ProposalAnswer::Free) => "frees it",
        };
        Self {
            title: TitleLine::new(&title.title, reason),
            state,
            class,
            answers: answers
                .iter()
                .map(|(user, answer)| (UserLink::from(user), answer_label(*answer)))
                .collect(),
        }
    }
}

impl TitleLine {
    fn new(title: &ProposedTitle, reason: String) -> Self {
        let (name, size) = (format_title(&title.title, title.year), format_size(title.size_bytes));
        Self { name, size, reason }
    }
}

fn format_reason(candidate: &Candidate, console: &ConsoleState) -> String {
    let (zone, now) = (console.zone(), console.clock.now());
    messages::format_reason(candidate.reason, candidate.last_played_at, (now, &zone))
}
