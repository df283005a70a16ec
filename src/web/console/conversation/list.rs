//! List of conversations, and the results of a search in their messages.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use crate::store::console::conversations::{self, ConversationFilter};
use crate::store::console::search::{
    self, MatchLocation, MatchSpan, MessageAuthor, SearchCursor, SearchMatch, SearchQuery,
};
use crate::store::console::{NEWEST, ResultPage};
use crate::web::auth::Operator;
use crate::web::console::flash::{self, FlashMessage};
use crate::web::console::format::{UserLink, turn_path};
use crate::web::console::home::ConversationLine;
use crate::web::console::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use crate::web::console::responses::{PageParams, PageResult};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversations.html")]
struct ConversationsPage {
    layout: PageLayout,
    typed: String,
    is_search: bool,
    found: Vec<MessageHit>,
    tabs: Vec<FilterTab>,
    conversations: Vec<ConversationLine>,
    /// Address of the rest of the list.
    next: Option<String>,
}

struct FilterTab {
    path: &'static str,
    name: &'static str,
    is_here: bool,
}

struct MessageHit {
    /// Page of the result: its conversation, or its user if it has no conversation; none if only its text remains.
    path: Option<String>,
    /// Name of the conversation.
    name: String,
    by: String,
    is_test: bool,
    when: DisplayTime,
    pieces: Vec<MatchSpan>,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct ConversationsQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    show: String,
    before: Option<i64>,
    /// Cursor of a search: only older messages than these of the user's and of ours follow.
    received: Option<i64>,
    sent: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

/// Label instead of a conversation's name.
const OUTSIDE: &str = "Outside any conversation";

const TABS: [(&str, &str, ConversationFilter); 4] = [
    ("/conversations", "All", ConversationFilter::All),
    ("/conversations?show=open", "Open", ConversationFilter::Open),
    ("/conversations?show=ended", "Ended", ConversationFilter::Ended),
    ("/conversations?show=test", "Test", ConversationFilter::Test),
];

pub(in crate::web) async fn list_conversations(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(asks): PageParams<ConversationsQuery>,
) -> PageResult {
    let which = match asks.show.as_str() {
        "open" => ConversationFilter::Open,
        "ended" => ConversationFilter::Ended,
        "test" => ConversationFilter::Test,
        _ => ConversationFilter::All,
    };
    let tab = |(path, name, of): (&'static str, &'static str, ConversationFilter)| FilterTab {
        path,
        name,
        is_here: of == which,
    };
    let mut content = ConversationsPage {
        layout: PageLayout::new(&operator, ConsoleSection::Conversations, "Conversations")
            .with_flash(asks.flash),
        typed: asks.q.chars().take(100).collect(),
        is_search: false,
        found: Vec::new(),
        tabs: TABS.into_iter().map(tab).collect(),
        conversations: Vec::new(),
        next: None,
    };
    if let Some(wanted) = SearchQuery::parse(&content.typed) {
        let below = SearchCursor {
            received: asks.received.unwrap_or(SearchCursor::NEWEST.received),
            sent: asks.sent.unwrap_or(SearchCursor::NEWEST.sent),
        };
        let (found, next) =
            console.db.read(move |conn| search::search_messages(conn, &wanted, below)).await?;
        content.is_search = true;
        content.found = found.into_iter().map(|found| message_hit(&console, found)).collect();
        content.next = next.map(|below| {
            let typed = &content.typed;
            let query = [
                ("q", typed.clone()),
                ("received", below.received.to_string()),
                ("sent", below.sent.to_string()),
            ];
            // Strings can always be encoded in this form.
            format!("/conversations?{}", serde_urlencoded::to_string(query).unwrap_or_default())
        });
    } else {
        let before = asks.before.unwrap_or(NEWEST);
        let ResultPage { rows, older } = console
            .db
            .read(move |conn| conversations::load_conversation_summaries(conn, which, before))
            .await?;
        content.conversations =
            rows.iter().map(|conversation| ConversationLine::from_summary(conversation, &console)).collect();
        content.next = older.map(|before| match which {
            ConversationFilter::All => format!("/conversations?before={before}"),
            ConversationFilter::Open => format!("/conversations?show=open&before={before}"),
            ConversationFilter::Ended => format!("/conversations?show=ended&before={before}"),
            ConversationFilter::Test => format!("/conversations?show=test&before={before}"),
        });
    }
    Ok(render_page(&content))
}

fn message_hit(console: &ConsoleState, found: SearchMatch) -> MessageHit {
    let with = UserLink::from(&found.user);
    let (path, name) = match (found.location, found.author) {
        (MatchLocation::InTurn(conversation, turn), _) => {
            (Some(turn_path(conversation.id, turn)), conversation.name)
        }
        (MatchLocation::BeforeTurn(conversation, next), by) => {
            let page = next.map(|turn| format!("?before={turn}")).unwrap_or_default();
            let entry = match by {
                MessageAuthor::User => "text",
                MessageAuthor::Assistant => "notice",
            };
            (
                Some(format!("/conversations/{}{page}#{entry}-{}", conversation.id, found.id)),
                conversation.name,
            )
        }
        (MatchLocation::OutsideConversation, MessageAuthor::User) => (with.path.clone(), OUTSIDE.to_owned()),
        (MatchLocation::OutsideConversation, MessageAuthor::Assistant) => {
            let path = format!("/deliveries?user={}&before={}", found.user.id, found.id + 1);
            (with.path.as_ref().map(|_| path), OUTSIDE.to_owned())
        }
    };
    MessageHit {
        path,
        name,
        by: match found.author {
            MessageAuthor::User => with.name,
            MessageAuthor::Assistant => format!("Dialarr to {}", with.name),
        },
        is_test: with.is_test,
        when: console.display_time(found.at),
        pieces: found.spans,
    }
}
