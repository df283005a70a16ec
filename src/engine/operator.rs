//! What the operator decides in the console, or lets a program decide, in the same way as an admin by text.

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

/// What came of the wish to let somebody in or to block them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    Done,
    /// Nobody would be left to let people in.
    LastAdmin,
    /// Nobody is known by this id.
    Nobody,
}

/// What came of the word on a member's wish to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Taken,
    /// It was settled already, or its time is over.
    TooLate,
    /// A deletion is carried out in the name of an admin, and there is none who can be texted.
    NoAdmin,
}

/// What came of the wish to begin afresh with somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    Ended(ConversationId),
    NothingOpen,
    /// Nobody is known by this id.
    Nobody,
}

impl Engine {
    /// What members may add, where they have no limits of their own.
    pub fn quotas(&self) -> Quotas {
        self.0.parts.settings.quotas
    }

    /// Lets somebody in, as `APPROVE` does.
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

    /// Ends what runs, drops the open question and ends the open conversation.
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
        // A turn that waits for the model looks whether it was taken back.
        self.wake(user);
        Ok(clearing)
    }

    /// Answers somebody with silence from here on, as `BLOCK` does.
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

    /// The title that a member wished to delete stays.
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

    /// Deletes what a member wished to be rid of. A deletion names the text that said yes to it, so the word becomes a
    /// text of the longest known admin, in line behind their others; they are told what came of it.
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

    /// Sends the words of a text again that surely did not arrive.
    pub async fn send_again(&self, text: i64) -> Result<Again, DbError> {
        let now = self.now();
        let again = self.0.parts.db.write(move |conn| resending::again(conn, text, By::Console, now)).await?;
        self.0.parts.outbox.ring();
        Ok(again)
    }

    /// Ends the pause: everyone's waiting texts are worked on.
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

/// A wish that can still be settled.
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
        // What a test user says goes by no phone.
        if admin.is_none() && !candidate.opted_out && !who::by_id(conn, candidate.id)?.is_test {
            admin = Some(candidate);
        }
    }
    let Some(admin) = admin else { return Ok(Said::NoAdmin) };
    // Whoever presses twice says it once: its code is good once, and stands in the id.
    let id = |wish: &Approval| Origin::Button.id(&format!("approval-{}-{}", wish.id, wish.code.as_str()));
    let in_vain = match answers::known(conn, ChannelKind::Console, &id(&wish))? {
        // The wish is open all the same: the text came to nothing, and another one may fare better.
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
