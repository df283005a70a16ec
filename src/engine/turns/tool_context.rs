//! Context of a tool run, built from database records.

use jiff::Timestamp;

use super::turn_context::TurnContext;
use crate::conversation::agents::AgentRequest;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::people::naming;
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::title_requests::{RequestStatus, RequestedTitle, Requester, TitleRequest};
use crate::conversation::transcript::{EffectLevel, EventId, QuotaKind, User, UserId, UserRole, UserStatus};
use crate::conversation::viewer_accounts::{ViewerAccount, WatchSharing};
use crate::engine::making_room;
use crate::engine::settings::{HouseholdSettings, Quotas};
use crate::engine::votes::gathering;
use crate::store::confirmation::approvals::{self, ApprovalKind};
use crate::store::library::title_attributions::{self, TitleAttribution};
use crate::store::library::title_requests::RecentTitleRequest;
use crate::store::library::{quotas, title_requests};
use crate::store::people::age_limits::{self, ReaderLimit};
use crate::store::people::users;
use crate::store::people::viewer_accounts::{self, LinkedAccount};
use crate::store::queue::{inbound_messages, notifications};
use crate::store::{Conn, QueryResult, agent_calls};
use crate::tools::making_room::SpaceRecords;
use crate::tools::own_space::OwnTitle;
use crate::tools::quota_allowance::{QuotaAllowance, QuotaUsage};
use crate::tools::tonight::gathering::Gathering;
use crate::tools::viewing::{Viewer, Viewers};
use crate::tools::{RequestTiming, ToolContext};

/// Records that a call needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordScope {
    pub(super) level: EffectLevel,
    /// The call reads what people have watched.
    pub(super) reads_viewing: bool,
    /// The call reads the titles that count toward the space of the user.
    pub(super) reads_own_titles: bool,
    /// The call reads the records by which titles that could go are judged.
    pub(super) reads_space_records: bool,
    /// The user asked for a review of the titles that may go.
    pub(super) reviews: bool,
    /// The call reads who could watch something together.
    pub(super) gathers_people: bool,
    /// The call may request titles at a Seerr.
    pub(super) requests_titles: bool,
    /// Room in which the answer is read.
    pub(super) room: Option<UserId>,
    /// Key of the agent that makes the call.
    pub(super) agent: Option<i64>,
}

impl From<EffectLevel> for RecordScope {
    fn from(level: EffectLevel) -> Self {
        Self {
            level,
            reads_viewing: false,
            reads_own_titles: false,
            reads_space_records: false,
            reviews: false,
            gathers_people: false,
            requests_titles: false,
            room: None,
            agent: None,
        }
    }
}

/// Database records that a tool may read.
pub(crate) struct ToolRecords {
    limit: ReaderLimit,
    title_requests: Vec<TitleRequest>,
    own_titles: Vec<OwnTitle>,
    space: SpaceRecords,
    viewers: Viewers,
    gathering: Gathering,
    seerr_account: Option<ViewerAccount>,
    agent_request: Option<AgentRequest>,
    user: UserRecords,
}

impl ToolRecords {
    /// Loads the records for a tool. A tool that only reads does not need the user's additions and removal requests.
    pub(super) fn load_records(
        conn: &mut Conn,
        user: &User,
        last_message: Option<(EventId, Option<UserId>)>,
        (scope, settings): (RecordScope, &HouseholdSettings),
        now: Timestamp,
    ) -> QueryResult<Self> {
        let viewers = match scope.reads_viewing {
            true => load_viewers(conn, user, settings.watch_sharing)?,
            false => Viewers::default(),
        };
        let gathering = match scope.gathers_people {
            true => gathering::load_gathering(conn, (user, scope.room), settings, now)?,
            false => Gathering::default(),
        };
        let seerr_account = match scope.requests_titles {
            true => viewer_accounts::load_seerr_account(conn, user.id)?,
            false => None,
        };
        let limit = match scope.room {
            Some(room) => age_limits::load_room_limit(conn, room)?,
            None => age_limits::load_user_limit(conn, user)?,
        };
        let title_requests = load_title_requests(conn, user)?;
        let quotas = match scope.level {
            EffectLevel::Read if !scope.reads_own_titles => Quotas::default(),
            EffectLevel::Read | EffectLevel::Write | EffectLevel::Destructive => {
                effective_quotas(conn, user, settings)?
            }
        };
        let needs_space = scope.level == EffectLevel::Write && quotas.space_gb.is_some();
        let own_titles = match scope.reads_own_titles || needs_space {
            true => load_own_titles(conn, user)?,
            false => Vec::new(),
        };
        let mut records = match scope.level {
            EffectLevel::Write | EffectLevel::Destructive => {
                UserRecords::load_user_records(conn, user, last_message, quotas, now)?
            }
            EffectLevel::Read => UserRecords::default(),
        };
        records.allowance.space_limit_gb = quotas.space_gb;
        let space = if scope.reads_space_records {
            making_room::load_space_records(conn, settings, now)?
        } else if scope.level == EffectLevel::Destructive && scope.reviews {
            making_room::load_titles_under_review(conn)?
        } else {
            SpaceRecords::default()
        };
        let agent_request = match (scope.agent, scope.level) {
            (Some(key), EffectLevel::Destructive) => {
                Some(load_agent_request(conn, (user.id, key), settings, now)?)
            }
            (Some(_) | None, _) => None,
        };
        Ok(Self {
            limit,
            title_requests,
            own_titles,
            space,
            viewers,
            gathering,
            seerr_account,
            agent_request,
            user: records,
        })
    }

    /// Builds the context of a tool from its records.
    pub(super) fn into_context(
        self,
        context: &TurnContext,
        settings: &HouseholdSettings,
        now: Timestamp,
    ) -> ToolContext {
        let UserRecords {
            allowance,
            removal_requests,
            admins,
            parents,
            titles_asked_for,
            last_three_messages,
        } = self.user;
        ToolContext {
            now,
            zone: settings.zone.clone(),
            rights: context.user.rights,
            audience: context.audience(),
            age_limit: self.limit.limit.clone(),
            turn_messages: own_messages(context),
            last_three_messages,
            languages: settings.languages.clone(),
            allowance,
            removal_requests,
            admins,
            parents,
            titles_asked_for,
            title_requests: match context.audience() {
                Audience::Author | Audience::Agent => self.title_requests,
                // Those of the author count toward the quota.
                Audience::Room => self.title_requests.into_iter().filter(is_own_and_waiting).collect(),
            },
            own_titles: self.own_titles,
            space: self.space,
            facts: context.facts.clone(),
            seerr_account: self.seerr_account,
            agent_request: self.agent_request,
            viewers: if is_written_by_user(context) { self.viewers } else { self.viewers.hidden() },
            gathering: match is_written_by_user(context) {
                true => self.gathering,
                false => self.gathering.without_accounts(),
            },
            request_timing: RequestTiming::Now,
        }
    }
}

/// Loads what decides whether an agent may ask its person about a deletion now.
fn load_agent_request(
    conn: &mut Conn,
    (person, key): (UserId, i64),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<AgentRequest> {
    let quiet_hours = notifications::load_quiet_hours(conn, person)?.or(settings.quiet_hours);
    Ok(AgentRequest {
        key,
        person,
        unconfirmed_questions: agent_calls::count_unconfirmed_questions(conn, person, now)?,
        quiet_until: quiet_hours.and_then(|hours| hours.next_end(now, &settings.zone)),
    })
}

/// Returns the texts of the turn that the user wrote, and not the operator in the user's name. Only these can ask for a
/// deletion or state a fact.
fn own_messages(context: &TurnContext) -> Vec<String> {
    let is_own = |event: &&InboundEvent| event.origin != MessageOrigin::Operator;
    match context.events.iter().all(|event| is_own(&event)) {
        true => context.turn.texts.clone(),
        false => context.events.iter().filter(is_own).map(|event| event.body.clone()).collect(),
    }
}

/// Returns whether the user wrote all messages of the turn, and no operator or program did. Only the user is told what
/// the user has watched.
fn is_written_by_user(context: &TurnContext) -> bool {
    if context.agent.is_some() {
        return false;
    }
    let is_own = |event: &InboundEvent| match event.origin {
        MessageOrigin::Sender | MessageOrigin::TestUser => true,
        MessageOrigin::Button
        | MessageOrigin::Operator
        | MessageOrigin::Session
        | MessageOrigin::ApiKey(_) => false,
    };
    context.events.iter().all(is_own)
}

fn is_own_and_waiting(request: &TitleRequest) -> bool {
    request.requester == Requester::You && request.status == RequestStatus::Waiting
}

/// Returns the quotas of a user. An admin has none.
fn effective_quotas(conn: &mut Conn, user: &User, settings: &HouseholdSettings) -> QueryResult<Quotas> {
    Ok(match user.rights.role {
        UserRole::Admin => Quotas::default(),
        UserRole::Member => settings.quotas.for_member(quotas::load_quota_override(conn, user.id)?),
    })
}

/// Loads the recent title requests of the household, with the names of the requesters but without phone numbers.
pub(crate) fn load_title_requests(conn: &mut Conn, user: &User) -> QueryResult<Vec<TitleRequest>> {
    let mut recent = title_requests::load_recent_title_requests(conn)?;
    if let Some(turn) = age_limits::load_user_limit(conn, user)?.changed_after {
        // The titles of others, and those from before the caps changed, may be over the caps.
        let last_call = age_limits::load_last_call_up_to(conn, turn)?;
        recent.retain(|request| request.user == user.id && request.call > last_call);
    }
    let users = if recent.is_empty() { Vec::new() } else { users::load_known_users(conn)? };
    let requests = recent.into_iter().map(|request: RecentTitleRequest| TitleRequest {
        requester: requester_of((request.user, user.id), &users),
        wanted: request.title,
        status: request.status,
        requested_at: request.requested_at,
    });
    Ok(requests.collect())
}

/// Loads the titles that count toward the space of a user, with the names of the other users who asked for them.
fn load_own_titles(conn: &mut Conn, user: &User) -> QueryResult<Vec<OwnTitle>> {
    let attributions = title_attributions::load_attributions(conn, user.id)?;
    let is_shared = attributions.iter().any(|title| !title.other_users.is_empty());
    let users = if is_shared { users::load_known_users(conn)? } else { Vec::new() };
    let own_title = |attribution: TitleAttribution| {
        let TitleAttribution { instance, kind, catalog_id, other_users } = attribution;
        let others = other_users.into_iter().map(|other| requester_of((other, user.id), &users));
        OwnTitle { instance, kind, catalog_id, shared_with: others.collect() }
    };
    Ok(attributions.into_iter().map(own_title).collect())
}

/// Returns a requester as the user `own` may see them.
fn requester_of((id, own): (UserId, UserId), known_users: &[User]) -> Requester {
    match known_users.iter().find(|known| known.id == id) {
        _ if id == own => Requester::You,
        Some(User { name: Some(name), .. }) => Requester::Named(name.clone()),
        Some(_) | None => Requester::Unnamed,
    }
}

/// Loads the accounts of the user, and those of other active users if the household shares what it watches.
fn load_viewers(conn: &mut Conn, user: &User, sharing: WatchSharing) -> QueryResult<Viewers> {
    let (own, others): (Vec<LinkedAccount>, Vec<LinkedAccount>) =
        viewer_accounts::load_linked_accounts(conn)?.into_iter().partition(|linked| linked.user == user.id);
    let own = own.into_iter().map(|linked| linked.account);
    let mut viewers = Viewers::new(own.filter(is_viewer).collect(), sharing);
    if sharing == WatchSharing::Household && !others.is_empty() {
        for other in users::load_known_users(conn)?.iter().filter(|other| other.status == UserStatus::Active)
        {
            let accounts = others.iter().filter(|linked| linked.user == other.id);
            let accounts = accounts.map(|linked| linked.account.clone());
            let accounts: Vec<ViewerAccount> = accounts.filter(is_viewer).collect();
            if !accounts.is_empty() {
                viewers.others.push(Viewer { name: naming::display_name(other), accounts });
            }
        }
    }
    viewers.taken = others.into_iter().map(|linked| linked.account).collect();
    let requested = approvals::load_open_approvals_about(conn, user.id)?.into_iter();
    viewers.requested = requested
        .filter_map(|open| match open.kind {
            ApprovalKind::LinkAccount(account) => Some(account),
            ApprovalKind::Join
            | ApprovalKind::Delete(_)
            | ApprovalKind::SeerrRequest(_)
            | ApprovalKind::Title(_) => None,
        })
        .collect();
    Ok(viewers)
}

/// Returns whether titles are watched with the account.
fn is_viewer(account: &ViewerAccount) -> bool {
    account.server.is_media_server()
}

/// Records that belong to the user alone.
#[derive(Default)]
struct UserRecords {
    allowance: QuotaAllowance,
    removal_requests: Vec<DeletionTarget>,
    admins: usize,
    parents: Option<String>,
    titles_asked_for: Vec<RequestedTitle>,
    last_three_messages: Vec<String>,
}

impl UserRecords {
    fn load_user_records(
        conn: &mut Conn,
        user: &User,
        last_message: Option<(EventId, Option<UserId>)>,
        quotas: Quotas,
        now: Timestamp,
    ) -> QueryResult<Self> {
        let mut load_usage = |rate: Option<RateLimit>, kind| -> QueryResult<QuotaUsage> {
            let additions = match rate {
                Some(rate) => quotas::load_counted_additions(conn, user.id, kind, now - rate.period)?,
                None => Vec::new(),
            };
            Ok(QuotaUsage { rate, additions })
        };
        let movies = load_usage(quotas.movies, QuotaKind::Movies)?;
        let seasons = load_usage(quotas.seasons, QuotaKind::Seasons)?;
        let admins = users::load_admins(conn)?;
        let contact = naming::format_admin_contacts(&admins);
        let (mut removal_requests, mut titles_asked_for) = (Vec::new(), Vec::new());
        for open in approvals::load_open_approvals_about(conn, user.id)? {
            match open.kind {
                ApprovalKind::Delete(item) => removal_requests.push(*item),
                ApprovalKind::Title(over_cap) => titles_asked_for.push(over_cap.wanted),
                ApprovalKind::Join | ApprovalKind::LinkAccount(_) | ApprovalKind::SeerrRequest(_) => {}
            }
        }
        let parents = match user.rights.rating_caps().is_unlimited() {
            true => Vec::new(),
            false => age_limits::load_parents(conn)?,
        };
        Ok(Self {
            allowance: QuotaAllowance { movies, seasons, contact, ..QuotaAllowance::default() },
            removal_requests,
            admins: admins.len(),
            parents: (!parents.is_empty()).then(|| naming::format_parents(&parents)),
            titles_asked_for,
            last_three_messages: inbound_messages::load_bodies_up_to(conn, user.id, last_message, 3)?,
        })
    }
}
