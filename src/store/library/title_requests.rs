//! Title requests of users, and the deferred additions that are retried until they succeed or are given up.

use diesel::dsl::max;
use diesel::prelude::*;
use jiff::Timestamp;

use super::title_attributions;
use crate::conversation::title_requests::{
    Coverage, DeferredAdditionState, QueuedRequest, RequestStatus, RequestedTitle, retry_delay,
};
use crate::conversation::transcript::{CallRow, MediaKind, ToolArguments, UserId};
use crate::store::Conn;
use crate::store::codec::{
    arguments_json, convert_integer, from_json, ms, none_if_unreadable, parse_arguments, to_json,
    unreadable_column,
};
use crate::store::column_types::{Millis, stored_enum};
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::requests;

stored_enum! {
    /// State of a title request.
    pub enum RequestState {
        Queued = "queued",
        /// The title is being added, with an unknown outcome.
        Adding = "adding",
        Added = "added",
        GivenUp = "given_up",
    }
}

literal_sql! {
    /// Condition of deferred additions, matched by a partial index.
    const OPEN = "requests.next_try_at IS NOT NULL";
}
/// Number of recent requests that a tool receives.
const RECENT_REQUEST_LIMIT: i64 = 500;

/// Records a request for a title that is already in the library. The request settles the user's deferred additions of
/// the same title, as far as it covers their seasons.
pub fn record_title_request(
    conn: &mut Conn,
    user: UserId,
    call: CallRow,
    (title, coverage): (&RequestedTitle, Coverage),
    now: Timestamp,
) -> QueryResult<()> {
    let covered = match coverage {
        Coverage::Whole => load_waiting_additions(conn, user, title)?,
        Coverage::SomeEpisodes => Vec::new(),
    };
    for open in covered {
        if RequestedTitle::includes_seasons((title.seasons.as_deref(), open.title.seasons.as_deref())) {
            settle_title_request(conn, open.id, &TitleRequestOutcome::Added(title), now)?;
        }
    }
    diesel::insert_into(requests::table)
        .values((
            (requests::user_id.eq(user), requests::tool_call_id.eq(call)),
            (requests::instance.eq(&title.instance), requests::kind.eq(title.kind)),
            (requests::catalog_id.eq(title.catalog_id), requests::title.eq(&title.title)),
            (requests::year.eq(i64::from(title.year)), requests::seasons.eq(seasons_json(title)?)),
            (requests::state.eq(RequestState::Added), requests::tries.eq(0)),
            (requests::created_at.eq(ms(now)), requests::settled_at.eq(ms(now))),
        ))
        .on_conflict_do_nothing()
        .execute(conn)?;
    title_attributions::attribute_title(conn, user, title, now)
}

/// Addition to be queued and tried later.
#[derive(Debug, Clone, Copy)]
pub struct NewDeferredAddition<'a> {
    pub user: UserId,
    pub call: CallRow,
    pub title: &'a RequestedTitle,
    pub arguments: &'a ToolArguments,
}

/// Queues an addition in a row of its own, so that it can be tried separately from the user's other additions. A repeat
/// of the same request renews its row.
pub fn queue_addition(conn: &mut Conn, new: &NewDeferredAddition<'_>, now: Timestamp) -> QueryResult<()> {
    let request = QueuedRequest { wanted: new.title.clone(), arguments: new.arguments.clone() };
    for open in load_waiting_additions(conn, new.user, new.title)? {
        if !open.request().is_repeated_by(&request) {
            continue;
        }
        return match open.state {
            DeferredAdditionState::InProgress => Ok(()),
            DeferredAdditionState::Waiting => {
                let row = requests::table.find(open.id);
                diesel::update(row).set(addition_columns(new, &request, now)?).execute(conn).map(drop)
            }
        };
    }
    let NewDeferredAddition { user, title, .. } = *new;
    diesel::insert_into(requests::table)
        .values((
            addition_columns(new, &request, now)?,
            (requests::user_id.eq(user), requests::instance.eq(&title.instance)),
            (requests::kind.eq(title.kind), requests::catalog_id.eq(title.catalog_id)),
            (requests::state.eq(RequestState::Queued), requests::next_try_at.eq(ms(now + retry_delay(0)))),
        ))
        .execute(conn)
        .map(drop)
}

/// Columns that are set when an addition is queued, and again when it is renewed.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = requests)]
struct DeferredAdditionColumns {
    tool_call_id: CallRow,
    title: String,
    year: i64,
    #[diesel(treat_none_as_null = true)]
    seasons: Option<String>,
    arguments: String,
    created_at: Millis,
}

fn addition_columns(
    new: &NewDeferredAddition<'_>,
    request: &QueuedRequest,
    now: Timestamp,
) -> QueryResult<DeferredAdditionColumns> {
    let QueuedRequest { wanted: title, arguments } = request;
    Ok(DeferredAdditionColumns {
        tool_call_id: new.call,
        title: title.title.clone(),
        year: i64::from(title.year),
        seasons: seasons_json(title)?,
        arguments: arguments_json(arguments),
        created_at: ms(now),
    })
}

/// Loads the deferred additions of a user for a title, for any seasons, oldest first.
pub(in crate::store) fn load_waiting_additions(
    conn: &mut Conn,
    user: UserId,
    title: &RequestedTitle,
) -> QueryResult<Vec<DeferredAddition>> {
    let rows: Vec<TitleRequestRow> = requests::table
        .filter(requests::kind.eq(title.kind).and(requests::catalog_id.eq(title.catalog_id)))
        .filter(requests::instance.eq(&title.instance).and(requests::user_id.eq(user)))
        .filter(requests::next_try_at.is_not_null())
        .order(requests::id)
        .select(TitleRequestRow::as_select())
        .load(conn)?;
    let into_addition =
        |row: TitleRequestRow| none_if_unreadable(row.into_deferred_addition()).map(Option::flatten);
    rows.into_iter().filter_map(|row| into_addition(row).transpose()).collect()
}

/// Returns whether a title, or a season of it, may still arrive, because a request for it is open or was added.
pub fn may_still_arrive(conn: &mut Conn, title: &RequestedTitle) -> QueryResult<bool> {
    let others: Vec<TitleRequestRow> = requests::table
        .filter(requests::kind.eq(title.kind).and(requests::catalog_id.eq(title.catalog_id)))
        .filter(requests::instance.eq(&title.instance).and(requests::state.ne(RequestState::GivenUp)))
        .select(TitleRequestRow::as_select())
        .load(conn)?;
    for other in others {
        // A request that cannot be read may be for any season.
        let Some(other) = none_if_unreadable(other.to_requested_title())? else { return Ok(true) };
        // A request without a list of seasons is for all of them.
        let season_lists = title.seasons.as_deref().zip(other.seasons.as_deref());
        let overlaps =
            |(given_up, other): (&[u32], &[u32])| given_up.iter().any(|season| other.contains(season));
        if season_lists.is_none_or(overlaps) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Loads the id of the next addition to try, with its time.
pub fn load_next_addition(conn: &mut Conn) -> QueryResult<Option<(i64, Timestamp)>> {
    let next = requests::table.filter(OPEN).order((requests::next_try_at, requests::id));
    let Some(id) = next.select(requests::id).first(conn).optional()? else { return Ok(None) };
    let next_try_at = none_if_unreadable(next.select(requests::next_try_at.assume_not_null()).first(conn))?;
    // A row whose time cannot be read counts as due, so that it does not block the others.
    Ok(Some((id, next_try_at.unwrap_or(Timestamp::MIN))))
}

/// Addition that is retried until it succeeds or is given up.
#[derive(Debug, Clone, PartialEq)]
pub struct DeferredAddition {
    pub id: i64,
    pub user: UserId,
    pub call: CallRow,
    pub title: RequestedTitle,
    pub arguments: ToolArguments,
    pub state: DeferredAdditionState,
    pub tries: u32,
    pub requested_at: Timestamp,
}

impl DeferredAddition {
    pub fn request(&self) -> QueuedRequest {
        QueuedRequest { wanted: self.title.clone(), arguments: self.arguments.clone() }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = requests)]
struct TitleRequestRow {
    id: i64,
    user_id: UserId,
    tool_call_id: Option<CallRow>,
    instance: String,
    kind: MediaKind,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<String>,
    state: RequestState,
    arguments: Option<String>,
    tries: i64,
    created_at: Timestamp,
}

impl TitleRequestRow {
    fn to_requested_title(&self) -> QueryResult<RequestedTitle> {
        Ok(RequestedTitle {
            instance: self.instance.clone(),
            kind: self.kind,
            catalog_id: self.catalog_id,
            title: self.title.clone(),
            year: convert_integer(self.year)?,
            seasons: self.seasons.as_deref().map(|text| from_json("seasons", text)).transpose()?,
        })
    }

    fn into_deferred_addition(self) -> QueryResult<Option<DeferredAddition>> {
        let Some(state) = self.state.to_deferred_state() else { return Ok(None) };
        let missing = || unreadable_column("request");
        Ok(Some(DeferredAddition {
            title: self.to_requested_title()?,
            id: self.id,
            user: self.user_id,
            call: self.tool_call_id.ok_or_else(missing)?,
            arguments: parse_arguments(&self.arguments.ok_or_else(missing)?)?,
            state,
            tries: convert_integer(self.tries)?,
            requested_at: self.created_at,
        }))
    }
}

/// Loads an open addition; `None` after it is settled.
pub fn load_open_addition(conn: &mut Conn, id: i64) -> QueryResult<Option<DeferredAddition>> {
    let row: Option<TitleRequestRow> =
        requests::table.find(id).select(TitleRequestRow::as_select()).first(conn).optional()?;
    row.map_or(Ok(None), TitleRequestRow::into_deferred_addition)
}

impl RequestState {
    /// Returns the state of an open addition; `None` for a settled request.
    fn to_deferred_state(self) -> Option<DeferredAdditionState> {
        match self {
            Self::Queued => Some(DeferredAdditionState::Waiting),
            Self::Adding => Some(DeferredAdditionState::InProgress),
            Self::Added | Self::GivenUp => None,
        }
    }
}

/// Open addition that cannot be read completely, reduced to the fields needed to notify its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRequest {
    pub user: UserId,
    /// Title without its seasons.
    pub title: RequestedTitle,
    pub state: DeferredAdditionState,
}

/// Loads the columns of an addition that remain readable if others are not; `None` after the addition is settled.
pub fn load_unreadable_request(conn: &mut Conn, id: i64) -> QueryResult<Option<UnreadableRequest>> {
    let row: Option<TitleRequestRow> =
        requests::table.find(id).select(TitleRequestRow::as_select()).first(conn).optional()?;
    let Some(row) = row else { return Ok(None) };
    let Some(state) = row.state.to_deferred_state() else { return Ok(None) };
    let year: u16 = none_if_unreadable(convert_integer(row.year))?.unwrap_or_default();
    let row = TitleRequestRow { seasons: None, year: i64::from(year), ..row };
    Ok(Some(UnreadableRequest { user: row.user_id, title: row.to_requested_title()?, state }))
}

/// Final outcome of a deferred addition.
#[derive(Debug, Clone, Copy)]
pub enum TitleRequestOutcome<'a> {
    /// The title is in the library, under this name.
    Added(&'a RequestedTitle),
    GivenUp,
}

/// Outcome of settling a title request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleRequestOutcome {
    Settled,
    /// The addition was withdrawn or settled earlier: no user waits for a notification.
    Withdrawn,
}

pub fn settle_title_request(
    conn: &mut Conn,
    id: i64,
    outcome: &TitleRequestOutcome<'_>,
    now: Timestamp,
) -> QueryResult<SettleRequestOutcome> {
    let open = requests::table.find(id).filter(requests::next_try_at.is_not_null());
    let settled_columns = (
        requests::next_try_at.eq(None::<Timestamp>),
        requests::arguments.eq(None::<String>),
        requests::settled_at.eq(ms(now)),
    );
    let updated_rows = match outcome {
        TitleRequestOutcome::Added(title) => diesel::update(open)
            .set((
                settled_columns,
                (requests::state.eq(RequestState::Added), requests::title.eq(&title.title)),
                (requests::year.eq(i64::from(title.year)), requests::seasons.eq(seasons_json(title)?)),
            ))
            .execute(conn)?,
        TitleRequestOutcome::GivenUp => diesel::update(open)
            .set((settled_columns, requests::state.eq(RequestState::GivenUp)))
            .execute(conn)?,
    };
    if updated_rows != 1 {
        return Ok(SettleRequestOutcome::Withdrawn);
    }
    if let TitleRequestOutcome::Added(title) = outcome {
        let (user, requested_at): (UserId, Timestamp) =
            requests::table.find(id).select((requests::user_id, requests::created_at)).first(conn)?;
        title_attributions::attribute_title(conn, user, title, requested_at)?;
    }
    Ok(SettleRequestOutcome::Settled)
}

/// Loads the deferred additions of a user, oldest first.
pub fn load_additions_of(conn: &mut Conn, user: UserId) -> QueryResult<Vec<DeferredAddition>> {
    let mut rows: Vec<TitleRequestRow> = requests::table
        .filter(OPEN.and(requests::user_id.eq(user)))
        .select(TitleRequestRow::as_select())
        .load(conn)?;
    rows.sort_unstable_by_key(|row| row.id);
    rows.into_iter()
        .filter_map(|row| none_if_unreadable(row.into_deferred_addition()).transpose())
        .filter_map(Result::transpose)
        .collect()
}

/// Withdraws all deferred additions of a user, without a notification.
pub fn withdraw_additions(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    // A user has only a few deferred additions.
    let waiting: Vec<i64> =
        requests::table.filter(OPEN.and(requests::user_id.eq(user))).select(requests::id).load(conn)?;
    for id in waiting {
        settle_title_request(conn, id, &TitleRequestOutcome::GivenUp, now)?;
    }
    Ok(())
}

/// Recent title request of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentTitleRequest {
    pub user: UserId,
    pub title: RequestedTitle,
    pub status: RequestStatus,
    pub requested_at: Timestamp,
    /// Call in which the title was requested; `None` if its turn was erased.
    pub call: Option<CallRow>,
}

/// Loads the household's recent requests for titles that are in the library or waiting, oldest first.
pub fn load_recent_title_requests(conn: &mut Conn) -> QueryResult<Vec<RecentTitleRequest>> {
    let last_id: Option<i64> = requests::table.select(max(requests::id)).first(conn)?;
    let rows: Vec<TitleRequestRow> = requests::table
        .filter(requests::id.gt(last_id.unwrap_or(0) - RECENT_REQUEST_LIMIT))
        .filter(requests::state.ne(RequestState::GivenUp))
        .order(requests::id)
        .select(TitleRequestRow::as_select())
        .load(conn)?;
    let into_request = |row: TitleRequestRow| {
        let status = match row.state.to_deferred_state() {
            Some(_) => RequestStatus::Waiting,
            None => RequestStatus::InLibrary,
        };
        Ok(RecentTitleRequest {
            user: row.user_id,
            title: row.to_requested_title()?,
            status,
            requested_at: row.created_at,
            call: row.tool_call_id,
        })
    };
    // Every tool receives these requests, so an unreadable request must not fail the tools.
    rows.into_iter().filter_map(|row| none_if_unreadable(into_request(row)).transpose()).collect()
}

pub(in crate::store) fn seasons_json(title: &RequestedTitle) -> QueryResult<Option<String>> {
    title.seasons.as_ref().map(to_json).transpose()
}

#[cfg(test)]
mod tests {
    use super::super::request_groups::{self, CloseGroupOutcome, RequestGroup};
    use super::*;
    use crate::conversation::transcript::{MediaKind, PhoneNumber};
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;
    use crate::store::turns::calls::CallStartOutcome;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create_member(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, NOW).unwrap()
    }

    fn requested_movie(title: &str) -> RequestedTitle {
        RequestedTitle {
            instance: "radarr".into(),
            kind: MediaKind::Movie,
            catalog_id: 438_631,
            title: title.into(),
            year: 2021,
            seasons: None,
        }
    }

    fn requested_seasons(numbers: &[u32]) -> RequestedTitle {
        let series =
            RequestedTitle { instance: "sonarr".into(), kind: MediaKind::Series, ..requested_movie("") };
        RequestedTitle { seasons: Some(numbers.to_vec()), ..series }
    }

    fn waiting_seasons(conn: &mut Conn) -> Vec<(RequestState, Option<String>)> {
        requests::table
            .filter(OPEN)
            .order(requests::id)
            .select((requests::state, requests::seasons))
            .load(conn)
            .unwrap()
    }

    fn queue_title(conn: &mut Conn, user: UserId, call: i64, title: &RequestedTitle) {
        // This test creates no rows for the calls.
        diesel::sql_query("PRAGMA foreign_keys=OFF").execute(conn).unwrap();
        let arguments = match &title.seasons {
            Some(seasons) => serde_json::json!({ "tvdb": title.catalog_id, "seasons": seasons }),
            None => serde_json::json!({ "tmdb": 438_631 }),
        };
        let arguments = ToolArguments::parse(arguments);
        queue_addition(
            conn,
            &NewDeferredAddition { user, call: CallRow(call), title, arguments: &arguments },
            NOW,
        )
        .unwrap();
    }

    fn states(conn: &mut Conn) -> Vec<(UserId, RequestState, String)> {
        requests::table
            .order(requests::id)
            .select((requests::user_id, requests::state, requests::title))
            .load(conn)
            .unwrap()
    }

    #[test]
    fn title_waits_once_per_user_with_the_latest_request() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        for (user, call, title) in [(ann, 1, ""), (ann, 2, "Dune"), (bob, 3, "")] {
            queue_title(&mut conn, user, call, &requested_movie(title));
        }
        let queued = |user: UserId, title: &str| (user, RequestState::Queued, title.to_owned());
        assert_eq!(states(&mut conn), [queued(ann, "Dune"), queued(bob, "")]);
        assert_eq!(load_next_addition(&mut conn).unwrap(), Some((1, NOW + retry_delay(0))));
    }

    #[test]
    fn attempt_starts_once_and_stays_open_until_its_outcome() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_movie(""));
        assert_eq!(
            [(); 2].map(|()| request_groups::start_addition(&mut conn, &[1]).unwrap()),
            [CallStartOutcome::Started, CallStartOutcome::NotStartable]
        );
        let addition = load_open_addition(&mut conn, 1).unwrap().unwrap();
        assert_eq!((addition.state, addition.tries), (DeferredAdditionState::InProgress, 1));
        let outcome = TitleRequestOutcome::Added(&requested_movie("Dune"));
        assert_eq!(settle_title_request(&mut conn, 1, &outcome, NOW).unwrap(), SettleRequestOutcome::Settled);
        assert_eq!(
            settle_title_request(&mut conn, 1, &TitleRequestOutcome::GivenUp, NOW).unwrap(),
            SettleRequestOutcome::Withdrawn
        );
        assert_eq!(states(&mut conn), [(ann, RequestState::Added, "Dune".to_owned())]);
        assert_eq!(
            (load_open_addition(&mut conn, 1).unwrap(), load_next_addition(&mut conn).unwrap()),
            (None, None)
        );
    }

    #[test]
    fn request_for_an_available_title_settles_the_queued_one() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_movie(""));
        record_title_request(&mut conn, ann, CallRow(2), (&requested_movie("Dune"), Coverage::Whole), NOW)
            .unwrap();
        assert_eq!(load_next_addition(&mut conn).unwrap(), None);
        let recent = load_recent_title_requests(&mut conn).unwrap();
        assert_eq!(
            recent.iter().map(|request| (request.user, request.title.catalog_id)).collect::<Vec<_>>(),
            [(ann, 438_631), (ann, 438_631)]
        );
    }

    fn due_group(conn: &mut Conn) -> RequestGroup {
        let (id, _) = load_next_addition(conn).unwrap().unwrap();
        let addition = load_open_addition(conn, id).unwrap().unwrap();
        request_groups::load_request_group(conn, addition).unwrap()
    }

    #[test]
    fn queued_seasons_of_one_series_are_tried_and_closed_together() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_seasons(&[1]));
        queue_title(&mut conn, ann, 2, &requested_seasons(&[2]));
        let group = due_group(&mut conn);
        let both_seasons = serde_json::json!({ "tvdb": 438_631, "seasons": [1, 2] });
        assert_eq!(
            (group.merged.call, &group.merged.arguments),
            (CallRow(2), &ToolArguments::parse(both_seasons))
        );
        assert_eq!(
            request_groups::start_addition(&mut conn, &group.request_ids()).unwrap(),
            CallStartOutcome::Started
        );
        let row = |seasons: &str| (RequestState::Adding, Some(seasons.to_owned()));
        assert_eq!(waiting_seasons(&mut conn), [row("[1]"), row("[2]")]);

        let closed =
            request_groups::close_group(&mut conn, &group, &TitleRequestOutcome::GivenUp, NOW).unwrap();
        assert_eq!(closed, CloseGroupOutcome::MergedInto(2));
        let remaining: Vec<Option<String>> =
            requests::table.select(requests::seasons).load(&mut conn).unwrap();
        assert_eq!(remaining, [Some("[1,2]".to_owned())]);
    }

    #[test]
    fn group_with_a_withdrawn_addition_does_not_start() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_seasons(&[1]));
        queue_title(&mut conn, ann, 2, &requested_seasons(&[2]));
        let group = due_group(&mut conn);
        record_title_request(&mut conn, ann, CallRow(3), (&requested_seasons(&[1]), Coverage::Whole), NOW)
            .unwrap();
        assert_eq!(
            request_groups::start_addition(&mut conn, &group.request_ids()).unwrap(),
            CallStartOutcome::NotStartable
        );
        let outcome = TitleRequestOutcome::Added(&group.merged.title);
        assert_eq!(
            request_groups::close_group(&mut conn, &group, &outcome, NOW).unwrap(),
            CloseGroupOutcome::MergedInto(2)
        );
        assert_eq!(
            request_groups::close_group(&mut conn, &group, &outcome, NOW).unwrap(),
            CloseGroupOutcome::Withdrawn
        );
    }

    #[test]
    fn refused_group_is_split_by_seasons_and_then_by_age() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        for (call, numbers) in [(1, [1]), (2, [9]), (3, [1])] {
            let title = requested_seasons(&numbers);
            let quality = (call == 3).then_some("4K");
            let arguments = serde_json::json!({ "tvdb": 438_631, "seasons": numbers, "quality": quality });
            let arguments = ToolArguments::parse(arguments);
            diesel::sql_query("PRAGMA foreign_keys=OFF").execute(&mut conn).unwrap();
            let new =
                NewDeferredAddition { user: ann, call: CallRow(call), title: &title, arguments: &arguments };
            queue_addition(&mut conn, &new, NOW).unwrap();
        }
        let parts = due_group(&mut conn).split_by_seasons();
        assert_eq!(parts.iter().map(RequestGroup::request_ids).collect::<Vec<_>>(), [vec![1, 3], vec![2]]);
        let without_newest = parts[0].without_newest(Some("Not in 4K.")).unwrap();
        assert_eq!((without_newest.request_ids(), without_newest.all_ids()), (vec![1], vec![1, 3]));
        assert_eq!(
            (without_newest.refusal.as_deref(), parts[1].without_newest(None)),
            (Some("Not in 4K."), None)
        );
    }

    #[test]
    fn addition_with_an_unreadable_time_is_due() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_movie(""));
        diesel::sql_query("UPDATE requests SET next_try_at = 9223372036854775807")
            .execute(&mut conn)
            .unwrap();
        assert_eq!(load_next_addition(&mut conn).unwrap(), Some((1, Timestamp::MIN)));
    }

    #[test]
    fn request_for_some_episodes_settles_no_waiting_season() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_seasons(&[1]));
        for (call, title) in
            [(2, requested_seasons(&[1])), (3, RequestedTitle { seasons: None, ..requested_seasons(&[]) })]
        {
            record_title_request(&mut conn, ann, CallRow(call), (&title, Coverage::SomeEpisodes), NOW)
                .unwrap();
        }
        assert_eq!(waiting_seasons(&mut conn).len(), 1);
    }

    #[test]
    fn season_queued_during_an_attempt_waits_in_its_own_row() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_seasons(&[1]));
        request_groups::start_addition(&mut conn, &[1]).unwrap();
        queue_title(&mut conn, ann, 2, &requested_seasons(&[1]));
        queue_title(&mut conn, ann, 3, &requested_seasons(&[2]));
        let row = |state: RequestState, seasons: &str| (state, Some(seasons.to_owned()));
        assert_eq!(
            waiting_seasons(&mut conn),
            [row(RequestState::Adding, "[1]"), row(RequestState::Queued, "[2]")]
        );
    }

    #[test]
    fn added_season_leaves_other_queued_seasons_waiting() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        queue_title(&mut conn, ann, 1, &requested_seasons(&[1]));
        record_title_request(&mut conn, ann, CallRow(2), (&requested_seasons(&[2]), Coverage::Whole), NOW)
            .unwrap();
        assert_eq!(waiting_seasons(&mut conn).len(), 1);
        record_title_request(&mut conn, ann, CallRow(3), (&requested_seasons(&[1, 3]), Coverage::Whole), NOW)
            .unwrap();
        assert_eq!(waiting_seasons(&mut conn), []);
    }

    #[test]
    fn title_may_arrive_only_through_a_request_for_the_same_season() {
        let mut conn = scratch();
        let ann = create_member(&mut conn, "+15550100001");
        diesel::sql_query("PRAGMA foreign_keys=OFF").execute(&mut conn).unwrap();
        record_title_request(&mut conn, ann, CallRow(1), (&requested_seasons(&[1]), Coverage::Whole), NOW)
            .unwrap();
        let all_seasons = RequestedTitle { seasons: None, ..requested_seasons(&[]) };
        let may_arrive = [requested_seasons(&[2]), requested_seasons(&[1, 2]), all_seasons]
            .map(|title| may_still_arrive(&mut conn, &title).unwrap());
        assert_eq!(may_arrive, [false, true, true]);
    }

    #[test]
    fn withdrawn_addition_is_not_attempted() {
        let mut conn = scratch();
        let (ann, bob) = (create_member(&mut conn, "+15550100001"), create_member(&mut conn, "+15550100002"));
        queue_title(&mut conn, ann, 1, &requested_movie(""));
        queue_title(&mut conn, bob, 2, &requested_movie(""));
        withdraw_additions(&mut conn, ann, NOW).unwrap();
        assert_eq!(load_next_addition(&mut conn).unwrap().map(|(id, _)| id), Some(2));
    }
}
