//! Health page: automatic checks, and connection tests that the operator starts.

use std::path::Path;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::layout::{ConsoleSection, PageLayout, render_page};
use super::responses::{PageError, PageResult};
use super::test_report::{FindingLine, TestReport};
use crate::doctor::connection_test::ConnectionKind;
use crate::doctor::{format_size, host};
use crate::store::database::database_file;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;
use crate::web::health::HealthCheckResult;

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage {
    layout: PageLayout,
    version: &'static str,
    database_size: String,
    disk: FindingLine,
    checks: Vec<HealthCheckResult>,
    is_simulated: bool,
    connections: Vec<ConnectionKind>,
    result: Option<ConnectionTestResult>,
}

/// Result of a connection test.
struct ConnectionTestResult {
    label: &'static str,
    report: TestReport,
}

#[derive(Deserialize)]
pub(in crate::web) struct ConnectionTestForm {
    connection: String,
}

pub(in crate::web) async fn show_health(
    State(console): State<ConsoleState>,
    operator: Operator,
) -> PageResult {
    Ok(render_page(&build_health_page(&console, &operator, None).await?))
}

pub(in crate::web) async fn check_connection(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(form): SignedForm<ConnectionTestForm>,
) -> PageResult {
    let connections = console.connection_tester.current().connections().into_iter();
    let connection = connections
        .into_iter()
        .find(|connection| connection.as_str() == form.connection)
        .ok_or(PageError::NotFound)?;
    let label = connection.label();
    let outcome = console.connection_tester.current().check_connection(connection).await;
    let report = TestReport::from_outcome(outcome);
    let status = if report.is_busy { StatusCode::CONFLICT } else { StatusCode::OK };
    let result = ConnectionTestResult { label, report };
    let page: Response = render_page(&build_health_page(&console, &operator, Some(result)).await?);
    Ok((status, page).into_response())
}

async fn build_health_page(
    console: &ConsoleState,
    operator: &Operator,
    result: Option<ConnectionTestResult>,
) -> Result<HealthPage, PageError> {
    let file = console.db.read(database_file::load_database_file_size).await?;
    Ok(HealthPage {
        layout: PageLayout::new(operator, ConsoleSection::Health, "Health"),
        version: env!("DIALARR_VERSION"),
        database_size: format_size(file.bytes),
        disk: FindingLine::from_finding(host::disk_finding(Path::new(&file.path))),
        checks: console.health.check_readiness().await.checks,
        is_simulated: console.connection_tester.current().is_simulated(),
        connections: console.connection_tester.current().connections(),
        result,
    })
}
