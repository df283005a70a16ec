//! Decisions of the operator in the console or through a program, carried out in the same way as those of an admin by
//! message.

use jiff::Timestamp;
use serde_json::json;

use super::ending::WayBack;
use super::joining::{self, Blocking};
use super::{Engine, Quotas, Settings, wishes};
use crate::conversation::inbound_message::{Received, Via};
use crate::conversation::origin::Origin;
use crate::conversation::transcript::{ChannelKind, ConversationId, UserId};
use crate::conversation::verification::FieldAuthority;
use crate::store::approvals::{self, Approval, Matter, Settled};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::console::who;
use crate::store::conversations::{self, EndReason};
use crate::store::db::DbError;
use crate::store::household::{self, Change};
use crate::store::ledger::{self, Admission, Pace};
use crate::store::pending::{self, Closing};
use crate::store::resending::{self, Again};
use crate::store::{Conn, QueryResult, answers, roster, turns, users};

/// Outcome of approving or blocking a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    Done,
    /// No admin would be left to approve newcomers.
    LastAdmin,
    /// No user has this id.
    Nobody,
}

/// Outcome of a decision on a member's removal request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Taken,
    /// The request was settled already, or it has expired.
    TooLate,
    /// A deletion is carried out in the name of an admin, and no admin can be texted.
    NoAdmin,
}

/// Outcome of ending a user's conversation so that a new one can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    Ended(ConversationId),
    NothingOpen,
    /// No user has this id.
    Nobody,
}

impl Engine {
    /// Quotas of members who have no limits of their own.
    pub fn quotas(&self) -> Quotas {
        self.0.parts.settings.quotas
    }

    /// Approves a user, as `APPROVE` does.
    pub async fn let_in(&self, user: UserId, by: By) -> Result<Joining, DbError> {
        let (number, now) = (self.0.parts.settings.number.clone(), self.now());
        let joining = self.0.parts.db.write(move |conn| {
            let Some(user) = roster::known(conn, user)? else { return Ok(Joining::Nobody) };
            joining::approve(conn, &user, by, number.as_ref(), now)?;
            Ok(Joining::Done)
        });
        let joining = joining.await?;
        self.0.parts.outbox.ring();
        Ok(joining)
    }

    /// Ends the running turn, drops the open confirmation prompt and ends the open conversation.
    pub async fn clear(&self, user: UserId, by: By) -> Result<Clearing, DbError> {
        let now = self.now();
        let clear = move |conn: &mut _| {
            if roster::known(conn, user)?.is_none() {
                return Ok(Clearing::Nobody);
            }
            let entry = Entry { by, kind: "clear", subject: Subject::User(user), detail: json!({}) };
            audit::record(conn, &entry, now)?;
            turns::request_cancel(conn, user, now)?;
            pending::close(conn, user, Closing::Dropped, now)?;
            let Some(open) = conversations::open(conn, user)? else { return Ok(Clearing::NothingOpen) };
            conversations::end(conn, open.id, EndReason::Cleared, now)?;
            Ok(Clearing::Ended(open.id))
        };
        let clearing = self.0.parts.db.write(clear).await?;
        // A turn that waits for the model checks whether it was canceled.
        self.wake(user);
        Ok(clearing)
    }

    /// Blocks a user, who gets no replies from now on, as `BLOCK` does.
    pub async fn shut_out(&self, user: UserId, by: By) -> Result<Joining, DbError> {
        let now = self.now();
        let joining = self.0.parts.db.write(move |conn| {
            let Some(user) = roster::known(conn, user)? else { return Ok(Joining::Nobody) };
            Ok(match joining::block(conn, &user, by, now)? {
                Blocking::Blocked => Joining::Done,
                Blocking::LastAdmin => Joining::LastAdmin,
            })
        });
        joining.await
    }

    /// Denies a member's removal request: the title stays.
    pub async fn deny_wish(&self, wish: i64) -> Result<Word, DbError> {
        let (number, now) = (self.0.parts.settings.number.clone(), self.now());
        let word = self.0.parts.db.write(move |conn| {
            let Some(wish) = open_wish(conn, wish, now)? else { return Ok(Word::TooLate) };
            Ok(match wishes::deny(conn, &wish, By::Console, number.as_ref(), now)? {
                Settled::Done => Word::Taken,
                Settled::TooLate => Word::TooLate,
            })
        });
        let word = word.await?;
        self.0.parts.outbox.ring();
        Ok(word)
    }

    /// Deletes the title of a member's removal request. A deletion names the message that confirmed it, so the decision
    /// becomes a message of the longest known admin, queued behind their others; the admin gets the result.
    pub async fn approve_wish(&self, wish: i64) -> Result<Word, DbError> {
        let (settings, now) = (self.0.parts.settings.clone(), self.now());
        let said = self.0.parts.db.write(move |conn| say_approve(conn, wish, &settings, now)).await?;
        Ok(match said {
            Said::By(admin) => {
                self.wake(admin);
                Word::Taken
            }
            Said::Already => Word::Taken,
            Said::TooLate => Word::TooLate,
            Said::NoAdmin => Word::NoAdmin,
        })
    }

    /// Resends the text of a message that certainly did not arrive.
    pub async fn send_again(&self, text: i64) -> Result<Again, DbError> {
        let now = self.now();
        let again = self.0.parts.db.write(move |conn| resending::again(conn, text, By::Console, now)).await?;
        self.0.parts.outbox.ring();
        Ok(again)
    }

    /// Ends the pause: the waiting messages of all users are processed.
    pub async fn resume_from_pause(&self) -> Result<Change, DbError> {
        let now = self.now();
        let change = self.0.parts.db.write(move |conn| {
            let change = household::end_pause(conn, By::Console, now)?;
            if change == Change::Done {
                let entry =
                    Entry { by: By::Console, kind: "resume", subject: Subject::Household, detail: json!({}) };
                audit::record(conn, &entry, now)?;
            }
            Ok(change)
        });
        let change = change.await?;
        self.recover().await?;
        Ok(change)
    }
}

/// Loads a removal request that can still be settled.
fn open_wish(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<Option<Approval>> {
    let mut open = approvals::open(conn)?.into_iter();
    Ok(open.find(|open| open.id == id && open.matter != Matter::Join && !open.is_over(now)))
}

enum Said {
    By(UserId),
    Already,
    TooLate,
    NoAdmin,
}

fn say_approve(conn: &mut Conn, id: i64, settings: &Settings, now: Timestamp) -> QueryResult<Said> {
    let Some(wish) = open_wish(conn, id, now)? else { return Ok(Said::TooLate) };
    let mut admin = None;
    for candidate in users::admins(conn)? {
        // A message of a test user is not sent to a phone.
        if admin.is_none() && !candidate.opted_out && !who::by_id(conn, candidate.id)?.is_test {
            admin = Some(candidate);
        }
    }
    let Some(admin) = admin else { return Ok(Said::NoAdmin) };
    // A second press sends nothing twice: the code is valid once, and is part of the id.
    let id = |wish: &Approval| Origin::Button.id(&format!("approval-{}-{}", wish.id, wish.code.as_str()));
    let in_vain = match answers::known(conn, ChannelKind::Console, &id(&wish))? {
        // The request is still open: the earlier message had no effect, and another one may succeed.
        Some(known) => ledger::is_over(conn, known.event)?,
        None => false,
    };
    let wish = if in_vain || approvals::is_dead(&wish) {
        let mut codes = settings.codes.four_digits();
        approvals::replace(conn, &wish, &mut || codes.draw(), now)?
    } else {
        wish
    };
    let subject = Subject::Approval(wish.id);
    let entry = Entry { by: By::Console, kind: "approve_deletion", subject, detail: json!({}) };
    let text = Received {
        channel: ChannelKind::Console,
        external_id: id(&wish),
        from: admin.phone.clone(),
        to: WayBack::to_user(conn, &admin, settings.number.as_ref())?.ours(),
        body: format!("approve {}", wish.code.as_str()),
        media: Vec::new(),
        via: Via::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: now,
        received_at: now,
    };
    match ledger::admit(conn, &text, Pace { quiet_ms: 0, at_most_ms: 0 })? {
        Admission::New { user, .. } => {
            audit::record(conn, &entry, now)?;
            Ok(Said::By(user))
        }
        Admission::Duplicate => Ok(Said::Already),
        Admission::Nobody => Ok(Said::NoAdmin),
    }
}
