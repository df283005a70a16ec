//! Console: the operator's view and decisions in a browser. Each page has one file, with its template next to it.

pub(super) mod api_page;
pub(super) mod assets;
pub(super) mod audit;
mod audit_labels;
mod chart;
pub(super) mod conversation;
mod conversation_line;
pub(super) mod deliveries;
pub(super) mod delivery_labels;
mod error_page;
pub(super) mod facts;
mod flash;
mod format;
pub(super) mod health;
pub(super) mod home;
pub(super) mod keys;
mod layout;
pub(super) mod library;
pub(super) mod making_room;
pub(super) mod memory;
mod model_preset;
pub(super) mod more;
mod operator_name;
mod playback_badge;
pub(super) mod requests;
mod responses;
pub(super) mod rooms;
mod setting_field;
pub(super) mod settings;
mod settings_form;
mod settings_save;
pub(super) mod setup_assistant;
pub(super) mod setup_texting;
pub(super) mod setup_webhooks;
pub(super) mod sign_in;
pub(super) mod spend;
mod test_report;
pub(super) mod user;
pub(super) mod user_addresses;
pub(super) mod user_settings;
pub(super) mod users;
pub(super) mod viewer_accounts;

/// Shows the page for a URL that identifies none.
pub(super) async fn show_not_found() -> responses::PageError {
    responses::PageError::NotFound
}
