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
use crate::web::console::conversation_line::ConversationLine;
use crate::web::console::flash::{self, FlashMessage};
use crate::web::console::format::{UserLink, turn_path};
use crate::web::console::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use crate::web::console::responses::{PageParams, PageResult};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "conversations.html")]
struct ConversationsPage {
    layout: PageLayout,
    query: String,
    is_search: bool,
    hits: Vec<MessageHit>,
    tabs: Vec<FilterTab>,
    conversations: Vec<ConversationLine>,
    /// URL of the next page.
    next: Option<String>,
}

struct FilterTab {
    path: &'static str,
    name: &'static str,
    is_active: bool,
}

struct MessageHit {
    /// Path of its conversation, or of its user if it has no conversation; `None` if its user was erased.
    path: Option<String>,
    /// Name of the conversation.
    name: String,
    author: String,
    is_test: bool,
    when: DisplayTime,
    spans: Vec<MatchSpan>,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct ConversationsQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    show: String,
    before: Option<i64>,
    /// Cursor of a search: older inbound messages than `received`, and older outbound messages than `sent`.
    received: Option<i64>,
    sent: Option<i64>,
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

/// Label of messages that belong to no conversation.
const OUTSIDE_CONVERSATION: &str = "Outside any conversation";

const TABS: [(&str, &str, ConversationFilter); 4] = [
    ("/conversations", "All", ConversationFilter::All),
    ("/conversations?show=open", "Open", ConversationFilter::Open),
    ("/conversations?show=ended", "Ended", ConversationFilter::Ended),
    ("/conversations?show=test", "Test", ConversationFilter::Test),
];

pub(in crate::web) async fn list_conversations(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(params): PageParams<ConversationsQuery>,
) -> PageResult {
    let filter = match params.show.as_str() {
        "open" => ConversationFilter::Open,
        "ended" => ConversationFilter::Ended,
        "test" => ConversationFilter::Test,
        _ => ConversationFilter::All,
    };
    let tab = |(path, name, tab_filter): (&'static str, &'static str, ConversationFilter)| FilterTab {
        path,
        name,
        is_active: tab_filter == filter,
    };
    let mut content = ConversationsPage {
        layout: PageLayout::new(&operator, ConsoleSection::Conversations, "Conversations")
            .with_flash(params.flash),
        query: params.q.chars().take(100).collect(),
        is_search: false,
        hits: Vec::new(),
        tabs: TABS.into_iter().map(tab).collect(),
        conversations: Vec::new(),
        next: None,
    };
    if let Some(query) = SearchQuery::parse(&content.query) {
        let cursor = SearchCursor {
            received: params.received.unwrap_or(SearchCursor::NEWEST.received),
            sent: params.sent.unwrap_or(SearchCursor::NEWEST.sent),
        };
        let (matches, next) =
            console.db.read(move |conn| search::search_messages(conn, &query, cursor)).await?;
        content.is_search = true;
        content.hits = matches.into_iter().map(|found| message_hit(&console, found)).collect();
        content.next = next.map(|cursor| {
            let query = [
                ("q", content.query.clone()),
                ("received", cursor.received.to_string()),
                ("sent", cursor.sent.to_string()),
            ];
            // Strings can always be encoded in this form.
            format!("/conversations?{}", serde_urlencoded::to_string(query).unwrap_or_default())
        });
    } else {
        let before = params.before.unwrap_or(NEWEST);
        let ResultPage { rows, older } = console
            .db
            .read(move |conn| conversations::load_conversation_summaries(conn, filter, before))
            .await?;
        content.conversations =
            rows.iter().map(|conversation| ConversationLine::from_summary(conversation, &console)).collect();
        content.next = older.map(|before| match filter {
            ConversationFilter::All => format!("/conversations?before={before}"),
            ConversationFilter::Open => format!("/conversations?show=open&before={before}"),
            ConversationFilter::Ended => format!("/conversations?show=ended&before={before}"),
            ConversationFilter::Test => format!("/conversations?show=test&before={before}"),
        });
    }
    Ok(render_page(&content))
}

fn message_hit(console: &ConsoleState, found: SearchMatch) -> MessageHit {
    let user = UserLink::from(&found.user);
    let (path, name) = match (found.location, found.author) {
        (MatchLocation::InTurn(conversation, turn), _) => {
            (Some(turn_path(conversation.id, turn)), conversation.name)
        }
        (MatchLocation::BeforeTurn(conversation, next), author) => {
            let page = next.map(|turn| format!("?before={turn}")).unwrap_or_default();
            let entry = match author {
                MessageAuthor::User => "text",
                MessageAuthor::Assistant => "notice",
            };
            (
                Some(format!("/conversations/{}{page}#{entry}-{}", conversation.id, found.id)),
                conversation.name,
            )
        }
        (MatchLocation::OutsideConversation, MessageAuthor::User) => {
            (user.path.clone(), OUTSIDE_CONVERSATION.to_owned())
        }
        (MatchLocation::OutsideConversation, MessageAuthor::Assistant) => {
            let path = format!("/deliveries?user={}&before={}", found.user.id, found.id + 1);
            (user.path.as_ref().map(|_| path), OUTSIDE_CONVERSATION.to_owned())
        }
    };
    MessageHit {
        path,
        name,
        author: match found.author {
            MessageAuthor::User => user.name,
            MessageAuthor::Assistant => format!("Dialarr to {}", user.name),
        },
        is_test: user.is_test,
        when: console.display_time(found.at),
        spans: found.spans,
    }
}
