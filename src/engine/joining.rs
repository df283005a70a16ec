//! Newcomers: they are asked for a name, the admins are asked to approve them, and nothing else is done for them.

use jiff::Timestamp;
use serde_json::json;

use super::begin::{Beginning, Begun};
use super::ending::{self, WayBack};
use crate::conversation::first_request::FirstRequest;
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::onboarding::{self, Move};
use crate::conversation::transcript::{Address, Status, User};
use crate::store::approvals::{self, End, Matter, NewApproval};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::conversations::EndReason;
use crate::store::ledger::{self, Outcome};
use crate::store::pending::{self, Closing};
use crate::store::{Conn, QueryResult, conversations, joining, outbox, requests, turns, users};

impl Beginning<'_> {
    pub(super) fn receive_stranger(&mut self, user: &User, event: &InboundEvent) -> QueryResult<Begun> {
        let stranger = joining::stranger(self.conn, user.id)?;
        let room = joining::waiting_room(self.conn, self.now)?;
        match onboarding::next(&stranger, room, &event.body, self.now) {
            Move::Welcome => {
                if let Some(request) = FirstRequest::from_text(&event.body) {
                    joining::keep_first_request(self.conn, user.id, &request, self.now)?;
                }
                self.ask_name(user, event, onboarding::WELCOME)
            }
            Move::AskNameAgain => self.ask_name(user, event, onboarding::ASK_AGAIN),
            Move::Introduce(name) => {
                joining::introduce(self.conn, user.id, &name, self.now)?;
                self.ask_admins_about(user, name.as_str(), event)?;
                self.skip(event, "introduced")
            }
            Move::AskAdminsAgain => {
                joining::wait_again(self.conn, user.id, self.now)?;
                self.ask_admins_about(user, &stranger.name.unwrap_or_default(), event)?;
                self.skip(event, "introduced")
            }
            Move::Silent => self.skip(event, "unknown_sender"),
        }
    }

    fn ask_name(&mut self, user: &User, event: &InboundEvent, text: &str) -> QueryResult<Begun> {
        joining::asked_name(self.conn, user.id, self.now)?;
        let text = WayBack::without_turn(user, event).reply(text.to_owned());
        outbox::queue(self.conn, &text, self.now)?;
        ledger::end(self.conn, event.id, Outcome::Replied, self.now)?;
        Ok(Begun::Answered)
    }

    fn ask_admins_about(&mut self, user: &User, name: &str, event: &InboundEvent) -> QueryResult<()> {
        let new = NewApproval { user: user.id, matter: &Matter::Join, call: None };
        let mut codes = self.settings.codes.four_digits();
        let approval = approvals::ask(self.conn, &new, &mut || codes.draw(), self.now)?;
        let question = onboarding::question(&user.phone, name, approval.code.as_str());
        let key = format!("approval:{}", approval.id);
        // If an admin never texted and no number is configured, the number that the newcomer texted is ours.
        let number = self.settings.number.as_ref().unwrap_or(&event.to);
        ending::tell_admins(self.conn, Some(number), &key, &question, self.now)
    }
}

/// Approves a user; a newcomer who waited is notified. `number` is ours, if one is configured.
pub fn approve(
    conn: &mut Conn,
    user: &User,
    by: By,
    number: Option<&Address>,
    now: Timestamp,
) -> QueryResult<()> {
    note(conn, "approve", user, by, now)?;
    settle_requests(conn, user, (is_join, End::Approved), by, now)?;
    joining::leave_room(conn, user.id, Status::Active, now)?;
    if user.status == Status::Pending && users::last_address(conn, user.id)?.is_some() {
        let request = joining::first_request(conn, user.id, now)?;
        let text = onboarding::admitted(user.name.as_deref(), request.as_ref());
        let key = format!("admitted:{}", now.as_millisecond());
        let notice = WayBack::to_user(conn, user, number)?.notice(&key, &text);
        outbox::queue_once(conn, &notice, now)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    Blocked,
    /// No admin would be left to approve newcomers.
    LastAdmin,
}

/// Blocks a user, who gets no replies from now on: running turns end, queued messages are suppressed, and open prompts
/// and conversations are closed.
pub fn block(conn: &mut Conn, user: &User, by: By, now: Timestamp) -> QueryResult<Blocking> {
    if users::is_last_admin(conn, user.id)? {
        return Ok(Blocking::LastAdmin);
    }
    note(conn, "block", user, by, now)?;
    settle_requests(conn, user, (is_join, End::Blocked), by, now)?;
    settle_requests(conn, user, (|matter: &Matter| !is_join(matter), End::Withdrawn), by, now)?;
    joining::leave_room(conn, user.id, Status::Blocked, now)?;
    joining::erase_first_request(conn, user.id)?;
    pending::close(conn, user.id, Closing::Dropped, now)?;
    turns::request_cancel(conn, user.id, now)?;
    outbox::suppress_all(conn, user.id, now)?;
    requests::withdraw(conn, user.id, now)?;
    if let Some(open) = conversations::open(conn, user.id)? {
        conversations::end(conn, open.id, EndReason::Blocked, now)?;
    }
    Ok(Blocking::Blocked)
}

fn note(conn: &mut Conn, kind: &'static str, user: &User, by: By, now: Timestamp) -> QueryResult<()> {
    let entry = Entry { by, kind, subject: Subject::User(user.id), detail: json!({}) };
    audit::record(conn, &entry, now)
}

/// Settles the open requests of a user about which `is_settled` is true. The user is not notified. A request that was
/// settled in the meantime stays as it is.
fn settle_requests(
    conn: &mut Conn,
    user: &User,
    (is_settled, end): (impl Fn(&Matter) -> bool, End),
    by: By,
    now: Timestamp,
) -> QueryResult<()> {
    for open in approvals::open_about(conn, user.id)?.into_iter().filter(|open| is_settled(&open.matter)) {
        approvals::settle(conn, open.id, end, by.user(), now)?;
    }
    Ok(())
}

fn is_join(matter: &Matter) -> bool {
    *matter == Matter::Join
}
