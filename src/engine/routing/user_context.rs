//! Data about a user that decides the route of the user's next message.

use jiff::Timestamp;

use crate::conversation::deletion::deletion_messages;
use crate::conversation::grammar::confirmation_reply::{self, ConfirmationReply, ReplyLanguage};
use crate::conversation::grammar::keyword_grammar::{self, TextCommand};
use crate::conversation::grammar::reaction;

use crate::conversation::lifecycle::{self, ConversationSlot};
use crate::conversation::making_room::keep_command::parse_keep_command;
use crate::conversation::people::first_request::{self, FirstRequest};
use crate::conversation::rate_limit::TextAllowance;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::open_prompt::OpenPrompt;
use crate::conversation::routing::prompt_notes;
use crate::conversation::routing::request_reader::RequestReader;
use crate::conversation::routing::route::{
    self, EndedPrompt, LastListSource, MessageRef, OpenVote, RecentMessage, RoutingContext,
};
use crate::conversation::transcript::{OutboxId, Responder, User, UserId};
use crate::conversation::votes::vote_command;
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::{ended_prompt, pending_action};
use crate::store::conversation::{conversations, history};
use crate::store::library::space_answers;
use crate::store::people::join_requests;
use crate::store::queue::limited_messages;
use crate::store::{Conn, QueryResult, digests, votes};

/// Data about a user that decides the route of the user's next message.
#[derive(Clone)]
pub(super) struct UserContext {
    pub(super) pending: Option<pending_action::PendingAction>,
    pub(super) open_prompt: Option<OpenPrompt>,
    pub(super) ended_prompt: Option<EndedPrompt>,
    /// Index of the first no among the waiting messages after the first message.
    pub(super) denied_at: Option<usize>,
    pub(super) recent: Vec<RecentMessage>,
    /// Notifications since the last reply, as notes for the model.
    pub(super) notes: Vec<String>,
    pub(super) last_list: LastListSource,
    pub(super) request_reader: RequestReader,
    pub(super) slot: ConversationSlot,
    /// One flag for each waiting message.
    pub(super) over_limit: Vec<bool>,
    pub(super) first_request: Option<FirstRequest>,
    /// End of the last pause.
    pub(super) resumed_at: Option<Timestamp>,
    /// Whether the model may answer messages in the room that are not addressed to us.
    pub(super) answers_unaddressed: bool,
    /// Open vote, if the first waiting message may be about one.
    pub(super) open_vote: Option<OpenVote>,
    /// Titles about which the user was asked, if the first waiting message may be about them.
    pub(super) titles_asked_about: Vec<String>,
    /// Digest that is our last message, if the first waiting message is a number.
    pub(super) digest: Option<OutboxId>,
}

impl UserContext {
    /// Loads all data that decides the route of a message.
    pub(super) fn load(
        conn: &mut Conn,
        settings: &HouseholdSettings,
        responder: Responder,
        (user, waiting): (&User, &[InboundEvent]),
        now: Timestamp,
    ) -> QueryResult<Self> {
        let room = waiting.first().and_then(|event| event.room);
        // A prompt is answered in the chat in which it was asked, and messages in other chats leave it alone.
        let pending = pending_action::load_pending_action(conn, user.id)?.filter(|open| open.room == room);
        let ended = match pending {
            Some(_) => None,
            None => ended_prompt::load_ended_prompt(conn, user.id, room, now)?,
        };
        let owner = room.unwrap_or(user.id);
        let open = conversations::load_open_conversation(conn, owner)?;
        let slot = lifecycle::choose_slot(open, settings.idle_timeout, now);
        let last_list = match open {
            Some(open) => history::load_last_list(conn, open.id)?,
            None => LastListSource::ModelOrNone,
        };
        let denied_at = find_no(waiting, pending.as_ref().map(|open| open.prompt), &settings.languages);
        let open_prompt = pending.as_ref().map(|open| OpenPrompt {
            titles: open.names.clone(),
            code: open.code,
            message: open.prompt,
            repeats: open.repeats,
            armed_at: open.armed_at,
            dated_at: open.dated_at,
            was_followed: open.was_followed,
            denied_since: denied_at.is_some(),
            channel: open.channel,
            address: open.address,
            kind: open.common_kind(),
        });
        let has_reaction = waiting.iter().any(|event| reaction::parse_reaction(&event.body).is_some());
        let mut recent = match has_reaction {
            true => history::load_quotable_messages(conn, user.id, room)?,
            false => history::load_last_messages(conn, user.id, room)?,
        };
        let notes = format_notes(user, &recent, settings, now);
        let digest = find_last_digest(conn, &recent, waiting.first())?;
        if !has_reaction {
            recent.retain(|message| message.notified_at.is_none());
        }
        let first_request = load_first_request(conn, (user.id, room), &recent, now)?;
        let over_limit = mark_over_limit(conn, settings, user.id, waiting)?;
        let open_vote = load_open_vote(conn, user.id, waiting.first())?;
        let titles_asked_about = load_titles_asked_about(conn, user.id, waiting.first())?;
        Ok(Self {
            pending,
            open_prompt,
            ended_prompt: ended,
            denied_at,
            recent,
            notes,
            last_list,
            request_reader: settings.request_reader(responder),
            slot,
            over_limit,
            first_request,
            resumed_at: None,
            answers_unaddressed: false,
            open_vote,
            digest,
            titles_asked_about,
        })
    }

    /// Returns the routing context of the waiting message at `index`.
    pub(super) fn routing_context<'a>(
        &'a self,
        user: &'a User,
        settings: &'a HouseholdSettings,
        index: usize,
    ) -> RoutingContext<'a> {
        RoutingContext {
            user,
            open_prompt: self.open_prompt.as_ref(),
            ended_prompt: self.ended_prompt.as_ref(),
            recent: &self.recent,
            last_list: self.last_list,
            request_reader: self.request_reader,
            languages: &settings.languages,
            is_first: !matches!(self.slot, ConversationSlot::Continue(_)),
            over_limit: self.over_limit.get(index).copied().unwrap_or(false),
            triage_level: settings.triage_level,
            first_request: self.first_request.as_ref(),
            resumed_at: self.resumed_at,
            answers_unaddressed: self.answers_unaddressed,
            open_vote: self.open_vote.filter(|_| index == 0),
            titles_asked_about: if index == 0 { &self.titles_asked_about } else { &[] },
            follows_digest: index == 0 && self.digest.is_some(),
        }
    }

    /// Returns the sentence that reports that the open confirmation prompt is closed.
    pub(super) fn closing_sentence(&self) -> String {
        self.pending
            .as_ref()
            .map(|open| deletion_messages::format_prompt_closed(&open.names))
            .unwrap_or_default()
    }

    /// Returns the sentence that reports that the titles of the open confirmation prompt are not deleted.
    pub(super) fn kept_sentence(&self) -> String {
        self.pending.as_ref().map(|open| deletion_messages::format_kept(&open.names)).unwrap_or_default()
    }
}

/// Returns the index of the first no to a prompt among the messages after the first one.
fn find_no(waiting: &[InboundEvent], prompt: Option<OutboxId>, languages: &[ReplyLanguage]) -> Option<usize> {
    let may_deny = |event: &InboundEvent| {
        event.press.is_none_or(|press| prompt.is_some_and(|prompt| press.is_on(prompt)))
    };
    let is_no = |event: &InboundEvent| {
        may_deny(event)
            && !route::opts_out(event)
            && confirmation_reply::parse_confirmation_reply(&event.body, None, languages)
                == ConfirmationReply::No
    };
    waiting.iter().skip(1).position(is_no).map(|index| index + 1)
}

/// Formats the notifications since the last reply, as notes for the model.
fn format_notes(
    user: &User,
    recent: &[RecentMessage],
    settings: &HouseholdSettings,
    now: Timestamp,
) -> Vec<String> {
    // A notification from before the caps changed may name a title over them.
    match user.rights.rating_caps().is_unlimited() {
        true => prompt_notes::format_notifications(recent, &settings.zone, now),
        false => Vec::new(),
    }
}

/// Loads the title that a new member requested, if our recent messages may offer it.
fn load_first_request(
    conn: &mut Conn,
    (user, room): (UserId, Option<UserId>),
    recent: &[RecentMessage],
    now: Timestamp,
) -> QueryResult<Option<FirstRequest>> {
    let has_offer = recent.iter().any(|recent| first_request::may_contain_offer(&recent.body));
    match has_offer && room.is_none() {
        true => join_requests::load_first_request(conn, user, now),
        false => Ok(None),
    }
}

/// Loads the open vote that a message may be about.
fn load_open_vote(
    conn: &mut Conn,
    user: UserId,
    message: Option<&InboundEvent>,
) -> QueryResult<Option<OpenVote>> {
    let is_about_vote = |event: &&InboundEvent| {
        event.press.is_some() || vote_command::parse_vote_reply(&event.body).is_some()
    };
    let Some(message) = message.filter(is_about_vote) else { return Ok(None) };
    let Some(vote) = votes::find_open_vote(conn, message.room)? else { return Ok(None) };
    Ok(Some(OpenVote { message: votes::find_ballot_message(conn, &vote, user)? }))
}

/// Loads the titles of the open proposal that a message may be about.
fn load_titles_asked_about(
    conn: &mut Conn,
    user: UserId,
    message: Option<&InboundEvent>,
) -> QueryResult<Vec<String>> {
    match message.and_then(|event| parse_keep_command(&event.body)) {
        Some(_) => {
            let titles = space_answers::load_asked_titles(conn, user)?.into_iter();
            Ok(titles.map(|title| title.title).collect())
        }
        None => Ok(Vec::new()),
    }
}

/// Finds the digest that is our last message in the chat, for a message that is a number. Other notifications that expect
/// no reply are not counted.
fn find_last_digest(
    conn: &mut Conn,
    recent: &[RecentMessage],
    message: Option<&InboundEvent>,
) -> QueryResult<Option<OutboxId>> {
    let is_number = |event: &&InboundEvent| {
        let command = keyword_grammar::parse_command(&event.body);
        event.press.is_none() && matches!(command, Some(TextCommand::Number(_)))
    };
    if message.filter(is_number).is_none() {
        return Ok(None);
    }
    let ours: Vec<(OutboxId, bool)> = recent
        .iter()
        .filter_map(|recent| match recent.message {
            MessageRef::Outbound(id) => Some((id, recent.notified_at.is_none())),
            MessageRef::Inbound(_) => None,
        })
        .collect();
    let ids: Vec<OutboxId> = ours.iter().map(|(id, _)| *id).collect();
    let digests = digests::find_digests(conn, &ids)?;
    let last = ours.into_iter().find(|(id, expects_reply)| *expects_reply || digests.contains(id));
    Ok(last.map(|(id, _)| id).filter(|id| digests.contains(id)))
}

/// Marks the waiting messages that exceed the rate limit. Button presses of the operator do not count.
fn mark_over_limit(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    user: UserId,
    waiting: &[InboundEvent],
) -> QueryResult<Vec<bool>> {
    let mut over_limit = vec![false; waiting.len()];
    let (Some(rate), Some(first)) = (settings.rate_limit, waiting.first()) else {
        return Ok(over_limit);
    };
    let languages = &settings.languages;
    let earlier = limited_messages::load_messages_counted_toward_limit(conn, user, first, rate.max)?;
    for allowance in TextAllowance::ALL {
        let uses_allowance = |body: &str| TextAllowance::from_text(body, languages) == allowance;
        let counted = earlier.iter().filter(|(_, body)| uses_allowance(body)).map(|(at, _)| *at).collect();
        let indexes: Vec<usize> = (0..waiting.len())
            .filter(|index| {
                let event = &waiting[*index];
                event.origin != MessageOrigin::Button && event.is_addressed && uses_allowance(&event.body)
            })
            .collect();
        let times: Vec<Timestamp> = indexes.iter().map(|index| waiting[*index].sent_at).collect();
        for (index, is_excess) in indexes.into_iter().zip(rate.mark_excess(counted, &times)) {
            over_limit[index] = is_excess;
        }
    }
    Ok(over_limit)
}
