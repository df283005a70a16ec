//! Start of work on a user's next message. The message's route and effects are decided and stored in one transaction.

use jiff::Timestamp;

use super::turn_notes::load_turn_notes;
use super::user_context::UserContext;
use crate::clock::Clock;
use crate::conversation::grammar::reaction::{self, ReactionTarget};
use crate::conversation::grammar::{confirmation_reply, keyword_grammar};
use crate::conversation::invitation;
use crate::conversation::notifications::quiet_hours::{self, NotificationPreference};
use crate::conversation::people::first_request::FirstRequest;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::no_reply_reason::NoReplyReason;
use crate::conversation::routing::room_routes;
use crate::conversation::routing::route::{self, RoutingContext};
use crate::conversation::routing::routes::Route;
use crate::conversation::transcript::{EventId, Responder, TurnId, User, UserId};
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::send_time::reschedule_notifications;
use crate::engine::settings::HouseholdSettings;
use crate::engine::turns::first_call::{FirstCall, StartedTurn};
use crate::engine::turns::turn_context::TurnContext;
use crate::engine::work_signal::WorkSignal;
use crate::failpoint;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::reactions::{self, ReceivedReaction};
use crate::store::database::db::{Db, Durability};
use crate::store::people::addresses::{self, OptOutcome, OptTarget};
use crate::store::people::{join_requests, pauses, users};
use crate::store::queue::{inbound_messages, notifications};
use crate::store::turns::turn_lifecycle::{ActiveTurn, LoadedTurn, TriageState, TurnKind, TurnPlan};
use crate::store::{Conn, QueryResult};

/// Outcome of starting work on a message.
pub(crate) enum TurnStartOutcome {
    /// A turn was created and has to run.
    Turn(ActiveTurn),
    /// A chat turn was created and has to run from this state.
    Chat(Box<StartedTurn>),
    /// Code has already handled the message.
    Answered,
    /// Code has ended the pause, so the waiting messages of all users may be processed.
    Resumed,
    /// The assistant is paused, and the messages wait.
    Paused,
    /// The signature also matches another message, so the carrier's record is checked before the message may act.
    Unverified(EventId),
}

/// Outcome of checking whether the room of a message is answered.
pub(super) enum RoomCheck {
    /// The message is routed as usual, also if it was written in a private chat.
    Answered {
        /// True if the model may answer messages that are not addressed to us.
        also_unaddressed: bool,
    },
    /// The message gets no answer.
    Ended(TurnStartOutcome),
}

/// Starter of work on the next message of a user.
pub(crate) struct TurnStarter {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
    /// Signal to the worker that adds approved titles.
    addition_queued: WorkSignal,
    /// Signal to the worker that sends digests.
    digest_changed: WorkSignal,
}

impl TurnStarter {
    pub(crate) fn new(parts: &EngineParts, addition_queued: WorkSignal, digest_changed: WorkSignal) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox, addition_queued, digest_changed }
    }

    /// Starts work on the user's next message. `first_call` was prepared for the chat turn that it may start. Also returns
    /// the created turn, if there is one.
    pub(crate) async fn start_turn(
        &self,
        user: UserId,
        first_call: Option<FirstCall>,
    ) -> anyhow::Result<(TurnStartOutcome, Option<TurnId>)> {
        let now = self.clock.now();
        let parts = self.live.current();
        let (settings, responder) = (parts.settings.clone(), parts.models.current_responder(now));
        let start_link = parts.channels.iter().find_map(|port| port.start_link());
        let start = move |conn: &mut _| {
            let mut start = TurnStart {
                conn,
                settings: &settings,
                start_link: start_link.as_deref(),
                now,
                responder,
                first_call: first_call.as_ref(),
                created_turn: None,
                has_decided: false,
                wakes: WorkerWakes::default(),
            };
            let outcome = start.route_next_message(user)?;
            Ok((outcome, start.created_turn, start.has_decided, start.wakes))
        };
        let durability = |(outcome, _, has_decided, _): &(TurnStartOutcome, _, bool, _)| match outcome {
            TurnStartOutcome::Chat(started) if !*has_decided => started.durability(),
            _ => Durability::Synced,
        };
        let (outcome, created_turn, has_decided, wakes) = self.db.write_with(durability, start).await?;
        failpoint::reached("turn.begun");
        if has_decided || !matches!(outcome, TurnStartOutcome::Chat(_)) {
            self.outbox.notify();
        }
        if wakes.has_queued_addition {
            self.addition_queued.notify();
        }
        if wakes.has_changed_digest {
            self.digest_changed.notify();
        }
        Ok((outcome, created_turn))
    }
}

/// Start of work on one message, within one transaction.
pub(super) struct TurnStart<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a HouseholdSettings,
    /// Beginning of a link that opens a chat with us, if a channel has such links.
    pub(super) start_link: Option<&'a str>,
    pub(super) now: Timestamp,
    /// Responder for messages that need a model.
    pub(super) responder: Responder,
    /// Prepared first call of the chat turn that the message may start.
    first_call: Option<&'a FirstCall>,
    /// Turn that was created for the message.
    pub(super) created_turn: Option<TurnId>,
    /// Whether the transaction closes a confirmation prompt or ends an opt-out before the turn starts.
    has_decided: bool,
    pub(super) wakes: WorkerWakes,
}

/// Workers that have work after the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WorkerWakes {
    /// Whether the worker has an approved title to add.
    pub(super) has_queued_addition: bool,
    /// Whether the time of a digest was set, or somebody asks for one.
    pub(super) has_changed_digest: bool,
}

impl TurnStart<'_> {
    fn route_next_message(&mut self, user: UserId) -> QueryResult<TurnStartOutcome> {
        self.has_decided = pending_action::expire_pending_action(self.conn, user, self.now)?;
        let waiting =
            inbound_messages::load_due_messages(self.conn, user, inbound_messages::MAX_PER_TURN, self.now)?;
        let Some(first) = waiting.first() else { return self.start_agent_call(user) };
        if let Some(event) = waiting.iter().find(|event| route::would_change_opt_out(event)) {
            return Ok(TurnStartOutcome::Unverified(event.id));
        }
        let mut user = users::load_sender(self.conn, user, first.address_id())?;
        let answers_unaddressed = match self.check_room(&user, first)? {
            RoomCheck::Ended(outcome) => return Ok(outcome),
            RoomCheck::Answered { also_unaddressed } => also_unaddressed,
        };
        if waiting[1..].iter().any(route::opts_out) {
            // No more messages may be sent, regardless of the first message's request.
            return self.skip_message(first, NoReplyReason::OptedOut.reason());
        }
        // The opt-in is also stored for a user who has not opted out according to our records: messages can overtake
        // each other, and an earlier opt-out may still arrive.
        if route::lifts_opt_out(first) {
            let target = OptTarget { user: user.id, address: first.address_id() };
            let change = addresses::opt_in(self.conn, target, first.sent_at, self.now)?;
            user.opted_out &= change == OptOutcome::Overtaken;
            self.has_decided = true;
        }
        let last_pause = pauses::load_last_pause(self.conn)?;
        if self.is_held_by_pause(last_pause, &user, first)? {
            return Ok(TurnStartOutcome::Paused);
        }
        let resumed_at = last_pause.and_then(|pause| pause.ended_at);
        let context =
            UserContext::load(self.conn, self.settings, self.responder, (&user, &waiting), self.now)?;
        let context = UserContext { resumed_at, answers_unaddressed, ..context };
        let routing = context.routing_context(&user, self.settings, 0);
        if route::would_act(&routing, first) {
            return Ok(TurnStartOutcome::Unverified(first.id));
        }
        let route = route::route_message(&routing, first);
        if room_routes::belongs_in_private_chat(first, route) {
            return self.move_to_private_chat(&user, first);
        }
        if !matches!(
            route,
            Route::OptOut | Route::Newcomer | Route::NewcomersCode | Route::Skip(NoReplyReason::Blocked)
        ) {
            self.store_reaction(&user, &context, &routing, first)?;
        }
        self.apply_route(route, &user, &context, &waiting)
    }

    /// Stores a reaction on the quoted message, independently of the route of the reaction.
    fn store_reaction(
        &mut self,
        user: &User,
        context: &UserContext,
        routing: &RoutingContext<'_>,
        event: &InboundEvent,
    ) -> QueryResult<()> {
        let target = route::reaction_target(routing, event);
        let target_message = match target {
            ReactionTarget::Message(index) => context.recent.get(index).map(|recent| recent.message),
            ReactionTarget::Media | ReactionTarget::NotFound => None,
        };
        let may_be_reaction = routing.open_prompt.is_some() && reaction::looks_like_reaction(&event.body);
        if target == ReactionTarget::NotFound && !may_be_reaction {
            return Ok(());
        }
        let reaction = reaction::parse_reaction(&event.body);
        let (emoji, removal) = reaction.map_or((None, false), |reaction| (reaction.emoji, reaction.removal));
        let received = ReceivedReaction {
            user: user.id,
            message: event.id,
            target: target_message,
            emoji,
            is_removal: removal,
        };
        reactions::store_user_reaction(self.conn, &received, self.now)
    }

    fn apply_route(
        &mut self,
        route: Route,
        user: &User,
        context: &UserContext,
        waiting: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let first = &waiting[..1];
        let answers_prompt = matches!(route, Route::Confirm | Route::RepeatPrompt | Route::WrongCode);
        if answers_prompt && self.is_suspended(user, &first[0])? {
            return self.refuse_suspended(user, first);
        }
        match route {
            Route::Skip(reason) => self.skip_message(&first[0], reason.reason()),
            Route::OptOut => self.opt_out(user, &first[0]),
            Route::OptIn => self.opt_in(user, first),
            Route::StoreOnly => self.store_without_reply(user, first),
            Route::Newcomer => self.receive_newcomer(user, &first[0]),
            Route::NewcomersCode => match self.use_newcomers_code(user, &first[0])? {
                Some(outcome) => Ok(outcome),
                None => self.receive_newcomer(user, &first[0]),
            },
            Route::InvitedAlready => {
                self.answer_and_drop_prompt(user, context, first, invitation::ALREADY_IN)
            }
            Route::Link => self.run_link_command(user, context, first),
            Route::PreferAddress => self.set_preferred_address(user, context, first),
            Route::Confirm => self.confirm_deletion(user, context, first),
            Route::Deny => self.deny_prompt(user, context, waiting),
            Route::RepeatPrompt => self.repeat_prompt(user, context, first),
            Route::WrongCode => self.handle_wrong_code(user, context, first),
            Route::ClosePrompt => self.close_unclear_prompt(user, context, first),
            Route::AcceptOffer => self.accept_offer(user, context, first),
            Route::DeclineOffer => {
                join_requests::erase_first_request(self.conn, user.id)?;
                self.answer_by_code(user, TurnKind::Command, first, "OK, I won't add it.")
            }
            Route::LateAnswer => {
                let text = context.ended_prompt.as_ref().map(|ended| ended.answer.clone());
                self.answer_by_code(
                    user,
                    TurnKind::Deny,
                    first,
                    text.as_deref().unwrap_or("Nothing is open."),
                )
            }
            Route::StaleButton => self.answer_command(user, first, keyword_grammar::STALE_BUTTON_REPLY),
            Route::Stale(reason) => self.reply_stale(user, context, reason),
            Route::RateLimited => self.reply_rate_limited(user, context, waiting),
            Route::AdminCommand => self.run_admin_command(user, context, first),
            Route::ListUsers => self.answer_list_of_users(user, context, first),
            Route::ListApprovals => self.answer_list_of_approvals(user, context, first),
            Route::ClearConversation => self.clear_conversation(user, context, first),
            Route::ForgetAll => self.forget_all(user, context, first),
            Route::ListFacts => self.list_facts(user, context, first),
            Route::ForgetFact(number) => self.forget_fact(user, context, first, number.into()),
            Route::Commands => self.answer_and_drop_prompt(
                user,
                context,
                first,
                &keyword_grammar::format_commands(user.rights.role),
            ),
            Route::Vote => self.run_vote_command(user, context, first),
            Route::Keep => self.run_keep_command(user, context, first),
            Route::WhichList => self.ask_which_list(user, context, first),
            Route::Digest => self.run_digest_command(user, context, first),
            Route::DigestLine(number) => self.act_on_digest_line(user, context, first, number),
            Route::More => self.send_next_page(user, context, first),
            Route::SetNotifications(preference) => self.set_notifications(user, context, first, preference),
            Route::Unverified => self.answer_command(user, first, keyword_grammar::UNVERIFIED_REPLY),
            Route::OnlyInPerson => self.answer_command(user, first, keyword_grammar::ONLY_IN_PERSON_REPLY),
            Route::MediaOnly => self.answer_command(user, first, keyword_grammar::MEDIA_ONLY_REPLY),
            Route::Turn(responder) => self.start_chat_turn(user, context, waiting, responder),
        }
    }

    /// Answers with a text of the program, and leaves an open confirmation prompt open.
    fn answer_command(
        &mut self,
        user: &User,
        first: &[InboundEvent],
        text: &str,
    ) -> QueryResult<TurnStartOutcome> {
        self.answer_by_code(user, TurnKind::Command, first, text)
    }

    fn answer_list_of_users(
        &mut self,
        user: &User,
        context: &UserContext,
        first: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let text = self.list_users(user)?;
        self.answer_and_drop_prompt(user, context, first, &text)
    }

    fn answer_list_of_approvals(
        &mut self,
        user: &User,
        context: &UserContext,
        first: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let text = self.list_open_approvals(user)?;
        self.answer_and_drop_prompt(user, context, first, &text)
    }

    fn set_notifications(
        &mut self,
        user: &User,
        context: &UserContext,
        first: &[InboundEvent],
        preference: NotificationPreference,
    ) -> QueryResult<TurnStartOutcome> {
        notifications::store_notification_preference(self.conn, user.id, preference, self.now)?;
        reschedule_notifications(self.conn, self.settings, Some(user.id), self.now)?;
        self.answer_and_drop_prompt(user, context, first, &quiet_hours::format_preference_saved(preference))
    }

    /// Closes the confirmation prompt and answers the first message, together with all yes and no messages up to the no
    /// at `denied_at`. Other messages between them get their own answers.
    fn deny_prompt(
        &mut self,
        user: &User,
        context: &UserContext,
        waiting: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        pending_action::close_pending_action(self.conn, user.id, CloseReason::Denied, self.now)?;
        let denied_at = context.denied_at.filter(|_| context.pending.is_some()).unwrap_or(0);
        let code = context.open_prompt.as_ref().and_then(|prompt| prompt.code);
        let is_yes_or_no = |event: &InboundEvent| {
            let reply =
                confirmation_reply::parse_confirmation_reply(&event.body, code, &self.settings.languages);
            matches!(
                reply,
                confirmation_reply::ConfirmationReply::Yes | confirmation_reply::ConfirmationReply::No
            ) && event.origin == waiting[0].origin
        };
        let (first, later) = (&waiting[..1], &waiting[1..=denied_at]);
        let denials: Vec<InboundEvent> =
            first.iter().chain(later.iter().filter(|event| is_yes_or_no(event))).cloned().collect();
        let text = match confirmation_reply::asks_to_keep(&waiting[denied_at].body) {
            true => context.closing_sentence(),
            false => "OK, kept.".to_owned(),
        };
        self.answer_by_code(user, TurnKind::Deny, &denials, &text)
    }

    /// Starts a turn in which the keyword responder adds the title that the user requested as a newcomer.
    fn accept_offer(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        join_requests::erase_first_request(self.conn, user.id)?;
        let request = context.first_request.as_ref().map(FirstRequest::to_request_text);
        let plan = TurnPlan { request, ..TurnPlan::for_responder(Responder::Keyword) };
        Ok(TurnStartOutcome::Turn(self.open_turn(user, TurnKind::Chat, &plan, events)?))
    }

    /// Starts a chat turn with all waiting messages that belong to it.
    fn start_chat_turn(
        &mut self,
        user: &User,
        context: &UserContext,
        waiting: &[InboundEvent],
        responder: Responder,
    ) -> QueryResult<TurnStartOutcome> {
        let without_prompt = UserContext {
            pending: None,
            open_prompt: None,
            ended_prompt: None,
            first_request: None,
            ..context.clone()
        };
        let belongs_to_turn = |index: usize| {
            let routing = without_prompt.routing_context(user, self.settings, index);
            let is_typed = waiting[index].origin != MessageOrigin::Button && waiting[index].press.is_none();
            is_typed && route::route_message(&routing, &waiting[index]) == Route::Turn(Responder::Model)
        };
        let count = match responder {
            Responder::Model => 1 + (1..waiting.len()).take_while(|index| belongs_to_turn(*index)).count(),
            Responder::Keyword => 1,
        };
        let mut plan = TurnPlan::for_responder(if responder == Responder::Model {
            self.responder
        } else {
            Responder::Keyword
        });
        let needs_triage = route::needs_triage(&context.routing_context(user, self.settings, 0), &waiting[0]);
        let is_unaddressed = waiting[..count].iter().all(|event| !event.is_addressed);
        if plan.responder == Responder::Model && (count == 1 && needs_triage || is_unaddressed) {
            plan.triage = TriageState::Open;
        }
        plan.notes.clone_from(&context.notes);
        plan.notes.extend(load_turn_notes(self.conn, user, &waiting[..count], self.settings, self.now)?);
        if plan.responder == Responder::Keyword && is_unaddressed {
            // Without a model, nobody decides that the message needs an answer.
            return self.store_without_reply(user, &waiting[..count]);
        }
        if context.pending.is_some() && !is_unaddressed {
            self.has_decided = true;
            pending_action::close_pending_action(self.conn, user.id, CloseReason::Dropped, self.now)?;
            let closing = context.closing_sentence();
            plan.notes.push(format!(
                "their text closed the open question, nothing was deleted; your answer is sent behind this: {closing}"
            ));
            plan.preface = Some(closing);
        }
        let events = &waiting[..count];
        let slot = context.slot;
        let active_turn = self.open_turn_in_slot((user, slot), TurnKind::Chat, &plan, events)?;
        let loaded = LoadedTurn::from_start(active_turn.id, plan, events.to_vec(), self.now);
        let context = TurnContext::from_loaded(self.conn, active_turn, user.clone(), loaded)?;
        let first_call = match self.first_call {
            Some(first_call) => first_call.start(self.conn, &context, slot, self.now)?,
            None => None,
        };
        Ok(TurnStartOutcome::Chat(Box::new(StartedTurn { context, first_call })))
    }
}
