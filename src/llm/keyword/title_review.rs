//! Review of the titles that may go to make room.

use serde_json::json;

use super::found_title::{json_object, parse_titles};
use super::next_step::{KeywordStep, KeywordTurn};
use super::replies::{self, FAILED_REPLY};
use crate::conversation::grammar::make_room_step::MakeRoomStep;
use crate::conversation::grammar::requests::request::Request;

impl KeywordTurn<'_> {
    /// Deletes the titles that may go with one call, which asks about some of them at a time.
    pub(super) fn review_titles(&self, request: &Request) -> KeywordStep {
        if !self.offers_tool("make_room") {
            return KeywordStep::Reply(replies::not_offered_reply("make_room").to_owned());
        }
        let step = json_object([("step", json!(MakeRoomStep::Review))]);
        let result = match self.find_result_or_call("make_room", step) {
            Ok(result) => result,
            Err(call) => return call,
        };
        match parse_titles(result.content).filter(|titles| !titles.is_empty()) {
            Some(titles) => self.remove_chosen(request, &titles),
            None => KeywordStep::Reply(result.reply_text(FAILED_REPLY)),
        }
    }
}
