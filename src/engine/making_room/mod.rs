//! Proposals to make room: the records by which titles are judged, the questions to the people concerned, and the end of
//! each phase.

pub(super) mod checker;
pub(super) mod opening;
pub(super) mod phases;
mod records;

pub(super) use records::{load_space_records, load_titles_under_review};
