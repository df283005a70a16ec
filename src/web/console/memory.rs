//! What is kept of what people say, and for how long.

use askama::Template;
use axum::extract::State;

use super::Console;
use super::answers::Shown;
use super::frame::{Frame, Place, page};
use crate::web::auth::Operator;

#[derive(Template)]
#[template(path = "memory.html")]
struct Memory {
    frame: Frame,
    retention: String,
}

pub(in crate::web) async fn show(State(console): State<Console>, operator: Operator) -> Shown {
    let days = console.retention.as_hours() / 24;
    Ok(page(&Memory {
        frame: Frame::new(&operator, Place::Memory, "Memory"),
        retention: if days == 1 { "a day".to_owned() } else { format!("{days} days") },
    }))
}
