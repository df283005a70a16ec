//! Admin commands by message, and the pause that admins can begin.

use serde_json::json;

use super::begin::{Beginning, Begun, Scene};
use super::code_guesses::{SUSPENDED, SUSPENDED_NOW};
use super::ending::WayBack;
use super::joining::{self, Blocking};
use super::{upkeep, wishes};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::orders::{self, FourDigits, Order, Quota, Verdict};
use crate::conversation::origin::Origin;
use crate::conversation::rate::Rate;
use crate::conversation::transcript::{Brain, Role, Status, User, UserId};
use crate::conversation::triage::Wants;
use crate::conversation::way::Way;
use crate::conversation::{deletion, naming, onboarding, route};
use crate::store::approvals::{self, Approval, End, Found, Matter, NewApproval, Settled};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::code_misses::MissOutcome;
use crate::store::household::{self, Change};
use crate::store::ledger;
use crate::store::memory::groups::{self, Heard};
use crate::store::pending;
use crate::store::quotas::{self, Own};
use crate::store::turns::{Kind, Plan};
use crate::store::{QueryResult, joining as waiting, outbox, users};
use crate::tools::removal::REMOVE_MEDIA;

/// Maximum number of requests that one message lists.
const LISTED: usize = 12;
/// Maximum number of waiting messages of a user that are checked for a pause notification.
const TOLD_OF_PAUSE: i64 = 20;

impl Beginning<'_> {
    pub(super) fn order(
        &mut self,
        admin: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let text = match orders::read(&events[0].body) {
            Some(Order::Settle(verdict, Some(code))) => {
                return self.settle(admin, scene, events, (verdict, &code));
            }
            Some(Order::Settle(_, None)) => self.waiting_list(admin)?,
            Some(Order::Users) => self.list_users(admin)?,
            Some(Order::Quota(quota)) => self.change_quota(admin, quota)?,
            Some(Order::Pause) => self.pause(admin)?,
            Some(Order::Resume) => {
                let text = self.resume(admin)?;
                self.answer_dropping(admin, scene, events, text)?;
                return Ok(Begun::Resumed);
            }
            Some(Order::Tell(words)) => self.tell_everyone(admin, words, &events[0])?,
            // The route came from the same parser, so this arm is not reached.
            None => "I did not understand that.".to_owned(),
        };
        self.answer_dropping(admin, scene, events, &text)
    }

    fn settle(
        &mut self,
        admin: &User,
        scene: &Scene,
        events: &[InboundEvent],
        (verdict, code): (Verdict, &FourDigits),
    ) -> QueryResult<Begun> {
        if self.is_suspended(admin, &events[0])? {
            return self.answer_dropping(admin, scene, events, SUSPENDED);
        }
        let text = match approvals::find(self.conn, code, self.now)? {
            Found::Unknown => {
                approvals::count_miss(self.conn)?;
                match self.count_guess(admin, &events[0])? {
                    MissOutcome::Counted => {
                        "No request has that code. Text USERS to see what is open.".to_owned()
                    }
                    MissOutcome::Suspended => SUSPENDED_NOW.to_owned(),
                }
            }
            Found::Dead => "That code does not work any more. Text USERS for a fresh one.".to_owned(),
            Found::Ended(end, by) => self.how_it_ended(end, by)?,
            Found::Open(approval) => match (&approval.matter, verdict) {
                (Matter::Delete(item), Verdict::Approve) => {
                    return self.approve_deletion(admin, scene, events, (approval.id, item));
                }
                (Matter::Delete(item), Verdict::Deny) => self.deny_deletion(admin, &approval, item)?,
                (Matter::Join, Verdict::Approve) => {
                    let newcomer = users::get(self.conn, approval.user)?;
                    let (by, number) = (By::User(admin.id), self.settings.number.as_ref());
                    joining::approve(self.conn, &newcomer, by, number, self.now)?;
                    format!("{} can text me now.", naming::called(&newcomer))
                }
                (Matter::Join, Verdict::Block) => {
                    let newcomer = users::get(self.conn, approval.user)?;
                    match joining::block(self.conn, &newcomer, By::User(admin.id), self.now)? {
                        Blocking::Blocked => format!("Blocked {}.", newcomer.phone.spaced()),
                        Blocking::LastAdmin => "The last admin cannot be blocked.".to_owned(),
                    }
                }
                (Matter::Join, Verdict::Deny) | (Matter::Delete(_), Verdict::Block) => {
                    self.question(&approval)?
                }
            },
        };
        self.answer_dropping(admin, scene, events, &text)
    }

    fn how_it_ended(&mut self, end: End, by: Option<UserId>) -> QueryResult<String> {
        let by = match by {
            Some(admin) => format!(" by {}", naming::called(&users::get(self.conn, admin)?)),
            None => String::new(),
        };
        Ok(match end {
            End::Approved => format!("That was approved{by} already."),
            End::Denied => format!("That was denied{by} already."),
            End::Blocked => format!("That number was blocked{by} already."),
            End::Expired => "That request has expired.".to_owned(),
            End::Withdrawn => "That request was withdrawn.".to_owned(),
            End::Replaced => "There is another code for that. Text USERS to see it.".to_owned(),
        })
    }

    /// Exact text of the approval request for the admins.
    fn question(&mut self, approval: &Approval) -> QueryResult<String> {
        let about = users::get(self.conn, approval.user)?;
        let code = approval.code.as_str();
        Ok(match &approval.matter {
            Matter::Join => {
                onboarding::question(&about.phone, about.name.as_deref().unwrap_or_default(), code)
            }
            Matter::Delete(item) => deletion::wish(&naming::called(&about), item, code),
        })
    }

    /// Carries out a deletion that an admin approved. The admin's decision is the yes: it is claimed once, and begins
    /// the deletion as a turn of the admin.
    fn approve_deletion(
        &mut self,
        admin: &User,
        scene: &Scene,
        events: &[InboundEvent],
        (id, item): (i64, &FrozenItem),
    ) -> QueryResult<Begun> {
        if approvals::settle(self.conn, id, End::Approved, Some(admin.id), self.now)? == Settled::TooLate {
            return self.answer_dropping(admin, scene, events, "That was answered already.");
        }
        self.note(admin, "approve_deletion", Subject::Approval(id))?;
        let mut plan = Plan::by(Brain::Keyword);
        plan.preface = self.drop_question(admin, scene, events)?;
        let live = self.open_turn(admin, Kind::Confirm, &plan, events)?;
        let approved = pending::Approved { turn: live.id, yes: events[0].id, tool: REMOVE_MEDIA, item };
        let call = pending::hold_approved(self.conn, &approved, self.now)?;
        approvals::set_run_call(self.conn, id, call)?;
        Ok(Begun::Turn(live))
    }

    fn deny_deletion(&mut self, admin: &User, approval: &Approval, item: &FrozenItem) -> QueryResult<String> {
        let number = self.settings.number.as_ref();
        if wishes::deny(self.conn, approval, By::User(admin.id), number, self.now)? == Settled::TooLate {
            return Ok("That was answered already.".to_owned());
        }
        let member = users::get(self.conn, approval.user)?;
        Ok(format!("OK, {} stays. I told {}.", deletion::name(item), naming::called(&member)))
    }

    /// Lists the open approvals for an admin, each with a code that works.
    pub(super) fn waiting_list(&mut self, admin: &User) -> QueryResult<String> {
        upkeep::expire_approvals(self.conn, self.settings, self.now)?;
        for stranger in waiting::named(self.conn)? {
            if approvals::open_about(self.conn, stranger)?.is_empty() {
                let new = NewApproval { user: stranger, matter: &Matter::Join, call: None };
                let mut codes = self.settings.codes.four_digits();
                approvals::ask(self.conn, &new, &mut || codes.draw(), self.now)?;
            }
        }
        let mut lines = Vec::new();
        for approval in approvals::open(self.conn)? {
            let approval =
                if approvals::is_dead(&approval) { self.replace(admin, &approval)? } else { approval };
            lines.push(self.question(&approval)?);
        }
        let left_out = lines.len().saturating_sub(LISTED);
        lines.truncate(LISTED);
        if left_out > 0 {
            lines.push(format!("And {left_out} more."));
        }
        Ok(if lines.is_empty() { "No requests are open.".to_owned() } else { lines.join("\n") })
    }

    /// Replaces a code that wrong guesses have invalidated; the other admins also receive the new one.
    fn replace(&mut self, admin: &User, dead: &Approval) -> QueryResult<Approval> {
        let mut codes = self.settings.codes.four_digits();
        let fresh = approvals::replace(self.conn, dead, &mut || codes.draw(), self.now)?;
        let question = self.question(&fresh)?;
        for other in users::admins(self.conn)?.into_iter().filter(|other| other.id != admin.id) {
            let way = WayBack::to_user(self.conn, &other, self.settings.number.as_ref())?;
            let text = way.notice(&format!("approval:{}", fresh.id), &question);
            outbox::queue_once(self.conn, &text, self.now)?;
        }
        Ok(fresh)
    }

    fn list_users(&mut self, admin: &User) -> QueryResult<String> {
        let everyone = users::known(self.conn)?;
        let names: Vec<String> =
            everyone.iter().filter(|user| user.status != Status::Pending).map(orders::listed).collect();
        Ok(format!("{}\n{}", names.join(", "), self.waiting_list(admin)?))
    }

    fn change_quota(&mut self, admin: &User, quota: Quota<'_>) -> QueryResult<String> {
        let everyone = users::known(self.conn)?;
        let member = match naming::named(&everyone, quota.who).as_slice() {
            [] => return Ok(format!("I know nobody called {}. Text USERS for the list.", quota.who)),
            [one] => (*one).clone(),
            several => {
                let numbers: Vec<String> = several.iter().map(|user| user.phone.spaced()).collect();
                return Ok(format!(
                    "Several people are called {}. Use a number: {}.",
                    quota.who,
                    numbers.join(", ")
                ));
            }
        };
        let name = naming::called(&member);
        if member.rights.role == Role::Admin {
            return Ok(format!("{name} is an admin and has no limit."));
        }
        let quotas = self.settings.quotas;
        let mut own = quotas::own(self.conn, member.id)?;
        if let Some(change) = quota.change {
            let changed = |own: Option<u32>, rate: Option<Rate>| {
                // A limit that the household does not set stays as it is.
                let Some(rate) = rate else { return own };
                let most = i64::from(own.unwrap_or(rate.most)).saturating_add(change).max(0);
                Some(u32::try_from(most).unwrap_or(u32::MAX))
            };
            own = Own {
                movies: changed(own.movies, quotas.movies),
                seasons: changed(own.seasons, quotas.seasons),
            };
            let detail = json!({ "movies": own.movies, "seasons": own.seasons });
            let subject = Subject::User(member.id);
            let entry = Entry { by: By::User(admin.id), kind: "quota", subject, detail };
            audit::record(self.conn, &entry, self.now)?;
            quotas::set_own(self.conn, member.id, own, self.now)?;
        }
        let standing = quotas.of_member(own);
        Ok(format!("{name} may add {}.", orders::quota_in_words(standing.movies, standing.seasons)))
    }

    fn tell_everyone(&mut self, admin: &User, words: &str, event: &InboundEvent) -> QueryResult<String> {
        self.note(admin, "tell_everyone", Subject::Household)?;
        let text = format!("{}: {words}", naming::called(admin));
        let mut told = Vec::new();
        for user in users::known(self.conn)? {
            if user.status == Status::Active && !user.opted_out && !user.test && user.id != admin.id {
                let way = WayBack::to_user(self.conn, &user, self.settings.number.as_ref())?;
                let key = format!("told:{}:{}", admin.id, event.id);
                outbox::queue_once(self.conn, &way.notice(&key, &text), self.now)?;
                told.push(user.id);
            }
        }
        if !admin.test {
            let source = format!("told:{}:{}", admin.id, event.id);
            let heard_by = [told.as_slice(), &[admin.id]].concat();
            let heard = Heard { words, by: &heard_by, from: Some(admin.id) };
            groups::said(self.conn, &source, &heard, self.now)?;
        }
        Ok(match told.len() {
            0 => "There is nobody else to tell.".to_owned(),
            1 => "OK, I told one person.".to_owned(),
            many => format!("OK, I told {many} people."),
        })
    }

    fn pause(&mut self, admin: &User) -> QueryResult<String> {
        Ok(match household::begin_pause(self.conn, admin.id, self.now)? {
            Change::Done => {
                self.note(admin, "pause", Subject::Household)?;
                "Paused. Texts are kept, and only admins are answered. Text RESUME to go on.".to_owned()
            }
            Change::WasSo => "I am paused already. Text RESUME to go on.".to_owned(),
        })
    }

    fn resume(&mut self, admin: &User) -> QueryResult<&'static str> {
        Ok(match household::end_pause(self.conn, By::User(admin.id), self.now)? {
            Change::Done => {
                self.note(admin, "resume", Subject::Household)?;
                "I am back. Texts of the last hour are answered now."
            }
            Change::WasSo => "I am not paused.",
        })
    }

    /// Returns whether the waiting messages are held because the assistant is paused. A sender is notified once per
    /// pause and per transport: a notification in the console does not reach the phone.
    pub(super) fn is_held(&mut self, user: &User, first: &InboundEvent) -> QueryResult<bool> {
        let Some(pause) = household::pause(self.conn)? else { return Ok(false) };
        let is_admin = user.status == Status::Active && user.rights.role == Role::Admin;
        if is_admin || user.status == Status::Blocked || route::opts_out(first) {
            return Ok(false);
        }
        if user.status != Status::Active || user.opted_out {
            return Ok(true);
        }
        let texted = |event: &&InboundEvent| event.wants == Wants::AnAnswer && event.origin != Origin::Button;
        for event in ledger::waiting(self.conn, user.id, TOLD_OF_PAUSE)?.iter().filter(texted) {
            let key = match event.to.way() {
                Way::Carrier => format!("pause:{pause}"),
                Way::Terminal | Way::Console => format!("pause:{pause}:here"),
            };
            let text = WayBack::without_turn(user, event).notice(&key, orders::PAUSED);
            outbox::queue_once(self.conn, &text, self.now)?;
        }
        Ok(true)
    }

    fn note(&mut self, admin: &User, kind: &'static str, subject: Subject) -> QueryResult<()> {
        let entry = Entry { by: By::User(admin.id), kind, subject, detail: json!({}) };
        audit::record(self.conn, &entry, self.now)
    }
}
