//! Rooms on the page Users, and the forms that change them.

use axum::extract::State;
use serde::Deserialize;

use super::flash::FlashMessage;
use super::responses::{PageError, PageId, PageResult, redirect_with_flash};
use super::user_settings::parse_digest;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::routing::rooms::RoomMode;
use crate::conversation::transcript::{UserId, UserStatus};
use crate::engine::operator::decisions::AccessOutcome;
use crate::engine::operator::rooms::{RoomChangeOutcome, RoomSettings};
use crate::store::audit::Actor;
use crate::store::people::rooms::Room;
use crate::web::auth::SignedForm;
use crate::web::console_state::ConsoleState;

/// Maximum number of rooms on the page.
pub(super) const MAX_ROOMS: i64 = 50;

/// Room as a row of the page.
pub(super) struct RoomLine {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) status: (&'static str, &'static str),
    pub(super) modes: Vec<ModeOption>,
    pub(super) remembers: bool,
    /// Time of the weekly digest, empty without one.
    pub(super) digest: String,
    pub(super) can_be_approved: bool,
    pub(super) can_be_blocked: bool,
}

pub(super) struct ModeOption {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    pub(super) is_selected: bool,
}

impl RoomLine {
    pub(super) fn from_room(room: &Room, digest: Option<DigestSchedule>) -> Self {
        let option = |mode: RoomMode| ModeOption {
            word: mode.as_word(),
            label: mode_label(mode),
            is_selected: mode == room.mode,
        };
        Self {
            id: room.id.0,
            name: room.name().to_owned(),
            status: match room.status {
                UserStatus::Pending => ("warn", "Waits for approval"),
                UserStatus::Blocked => ("bad", "Blocked"),
                UserStatus::Active if room.is_left => ("", "Left"),
                UserStatus::Active => ("good", "Active"),
            },
            modes: RoomMode::ALL.into_iter().map(option).collect(),
            remembers: room.remembers,
            digest: digest.map(DigestSchedule::to_words).unwrap_or_default(),
            can_be_approved: room.status != UserStatus::Active,
            can_be_blocked: room.status != UserStatus::Blocked,
        }
    }
}

fn mode_label(mode: RoomMode) -> &'static str {
    match mode {
        RoomMode::Off => "Nothing",
        RoomMode::Mentioned => "Mentions, replies and commands",
        RoomMode::Ai => "Also what the model picks",
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct RoomForm {
    mode: String,
    /// Present if the box is checked.
    remembers: Option<String>,
    #[serde(default)]
    digest: String,
}

pub(in crate::web) async fn change_room(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<RoomForm>,
) -> PageResult {
    let Some(mode) = RoomMode::from_word(&form.mode) else { return Err(PageError::NotFound) };
    let digest = match parse_digest(&form.digest) {
        Ok(digest) => digest,
        Err(flash) => return Ok(redirect_with_flash("/users", flash)),
    };
    let settings = RoomSettings { mode, remembers: form.remembers.is_some(), digest };
    match console.engine.decisions.change_room(UserId(id), settings, Actor::Console).await? {
        RoomChangeOutcome::Changed => {
            console.engine.digests.wake_worker();
            Ok(redirect_with_flash("/users", FlashMessage::SettingsSaved))
        }
        RoomChangeOutcome::Unchanged => Ok(redirect_with_flash("/users", FlashMessage::NothingChanged)),
        RoomChangeOutcome::UnknownRoom => Err(PageError::NotFound),
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct RoomButtonForm {}

pub(in crate::web) async fn approve_room(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(RoomButtonForm {}): SignedForm<RoomButtonForm>,
) -> PageResult {
    let outcome = console.engine.decisions.approve_access(UserId(id), Actor::Console).await?;
    report_access_change(outcome, FlashMessage::RoomApproved)
}

pub(in crate::web) async fn block_room(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(RoomButtonForm {}): SignedForm<RoomButtonForm>,
) -> PageResult {
    let outcome = console.engine.decisions.block_access(UserId(id), Actor::Console).await?;
    report_access_change(outcome, FlashMessage::RoomBlocked)
}

fn report_access_change(outcome: AccessOutcome, success: FlashMessage) -> PageResult {
    match outcome {
        AccessOutcome::Changed => Ok(redirect_with_flash("/users", success)),
        AccessOutcome::LastAdmin => Ok(redirect_with_flash("/users", FlashMessage::LastAdmin)),
        AccessOutcome::UnknownUser => Err(PageError::NotFound),
    }
}
