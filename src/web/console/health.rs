//! Health of the program: continuous checks, and tests that run when the operator presses a button.

use std::path::Path;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::answers::{Failure, Shown};
use super::frame::{Frame, Place, page};
use crate::doctor::checkup::{Connection, Tested};
use crate::doctor::{Finding, Grade, house, size};
use crate::store::file;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;
use crate::web::health::Check;

#[derive(Template)]
#[template(path = "health.html")]
struct Health {
    frame: Frame,
    version: &'static str,
    database_size: String,
    disk: Line,
    checks: Vec<Check>,
    is_simulated: bool,
    connections: Vec<Connection>,
    result: Option<TestResult>,
}

/// Result of a test.
struct TestResult {
    label: &'static str,
    lines: Vec<Line>,
    is_busy: bool,
}

struct Line {
    grade: &'static str,
    class: &'static str,
    what: String,
    hint: Option<String>,
}

impl Line {
    fn of(finding: Finding) -> Self {
        let class = match finding.grade {
            Grade::Ok => "good",
            Grade::Warning => "warn",
            Grade::Failure => "bad",
        };
        Self { grade: finding.grade.word(), class, what: finding.what, hint: finding.hint }
    }
}

#[derive(Deserialize)]
pub(in crate::web) struct Wanted {
    connection: String,
}

pub(in crate::web) async fn show(State(console): State<ConsoleState>, operator: Operator) -> Shown {
    Ok(page(&health(&console, &operator, None).await?))
}

pub(in crate::web) async fn test(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(wanted): SignedForm<Wanted>,
) -> Shown {
    let known = console.checkup.connections().into_iter();
    let connection = known
        .into_iter()
        .find(|connection| connection.word() == wanted.connection)
        .ok_or(Failure::Missing)?;
    let label = connection.label();
    let (status, result) = match console.checkup.test(connection).await {
        Tested::Found(found) => {
            let lines = found.into_iter().map(Line::of).collect();
            (StatusCode::OK, TestResult { label, lines, is_busy: false })
        }
        Tested::Busy => (StatusCode::CONFLICT, TestResult { label, lines: Vec::new(), is_busy: true }),
    };
    let shown: Response = page(&health(&console, &operator, Some(result)).await?);
    Ok((status, shown).into_response())
}

async fn health(
    console: &ConsoleState,
    operator: &Operator,
    result: Option<TestResult>,
) -> Result<Health, Failure> {
    let file = console.db.read(file::of).await?;
    Ok(Health {
        frame: Frame::new(operator, Place::Health, "Health"),
        version: env!("DIALARR_VERSION"),
        database_size: size(file.bytes),
        disk: Line::of(house::disk(Path::new(&file.path))),
        checks: console.health.ready().await.checks,
        is_simulated: console.checkup.is_simulated(),
        connections: console.checkup.connections(),
        result,
    })
}
