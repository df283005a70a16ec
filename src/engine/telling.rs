//! Notifications for each user about arr events that belong together, within the transaction that claims the events.

use jiff::Timestamp;

use super::Settings;
use super::ending::WayBack;
use crate::arr::episodes::Episode;
use crate::arr::history::HistoryEntry;
use crate::arr::{Series, history};
use crate::conversation::notices::{
    self as words, Copy, EPISODES_EVERY, Group, HOUR, Leave, News, Report, TROUBLE_EVERY, Title, Topic,
};
use crate::conversation::transcript::{MediaKind, Status, UserId};
use crate::messaging::segments::Segments;
use crate::store::arr_events::{self, Take};
use crate::store::follows::{self, Followed};
use crate::store::memory::groups::{self, Heard};
use crate::store::notices::{self, Noted, Wants};
use crate::store::{Conn, QueryResult, users};

/// Outcome of notifying users about a group.
pub(super) enum Told {
    Done,
    /// Single episodes have to wait for more.
    NotBefore(Timestamp),
    /// The server did not answer and has to be asked again; it also does not answer for any other show.
    NoAnswer,
    /// The server cannot return anything about this one show.
    Unclear,
}

/// Flag for whether a real user was notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hearing {
    Told,
    NotTold,
}

/// News about a show for its followers.
pub(super) struct ShowNews {
    pub(super) instance: String,
    pub(super) show: Title,
    reports: Vec<i64>,
    /// New episodes by season and number, in order.
    pub(super) episodes: Vec<(u32, u32)>,
    /// Complete seasons, of those that have new episodes.
    pub(super) complete: Vec<u32>,
    /// No more episodes of the show will come.
    pub(super) is_over: bool,
}

impl ShowNews {
    pub(super) fn of(group: &Group) -> Self {
        let mut news = Self {
            instance: group.instance.clone(),
            show: Title { id: 0, catalog_id: 0, title: String::new(), year: 0 },
            reports: group.reports.iter().map(|report| report.id).collect(),
            episodes: Vec::new(),
            complete: Vec::new(),
            is_over: false,
        };
        for one in &group.reports {
            if let Report::Episode { show, season, number, copy } = &one.report {
                news.show.clone_from(show);
                if *copy == Copy::First {
                    news.episodes.push((*season, *number));
                }
            }
        }
        news.episodes.sort_unstable();
        news.episodes.dedup();
        news
    }

    pub(super) fn seasons(&self) -> Vec<u32> {
        let mut seasons: Vec<u32> = self.episodes.iter().map(|(season, _)| *season).collect();
        seasons.dedup();
        seasons
    }

    /// Updates the news with Sonarr's data about the show and the episodes of its growing seasons.
    pub(super) fn learn(
        &mut self,
        series: &Series,
        (entries, growing): (&[HistoryEntry], &[Episode]),
        now: Timestamp,
    ) {
        // The event of a complete import does not indicate whether it replaced anything.
        self.episodes.retain(|episode| !history::was_upgraded(entries, *episode));
        let is_complete = |season: &u32| series.season_is_complete(*season, growing, now);
        self.complete = self.seasons().into_iter().filter(is_complete).collect();
        self.is_over = is_over(series);
    }

    /// News about seasons that are complete without a new import.
    pub(super) fn without_import(instance: &str, series: &Series, complete: Vec<u32>) -> Self {
        let show = Title {
            id: series.id.unwrap_or_default(),
            catalog_id: series.tvdb,
            title: series.title.clone(),
            year: series.year,
        };
        let (reports, episodes) = (Vec::new(), Vec::new());
        Self { instance: instance.to_owned(), show, reports, episodes, complete, is_over: is_over(series) }
    }
}

/// Returns whether no more episodes of a show will come and all of them are on disk.
fn is_over(series: &Series) -> bool {
    series.ended && series.episodes_on_disk >= series.episodes
}

pub(super) fn followed(instance: &str, show: &Title, season: u32) -> Followed {
    Followed {
        instance: instance.to_owned(),
        kind: MediaKind::Series,
        catalog_id: show.catalog_id,
        season: Some(season),
    }
}

/// Returns the earliest send time of a message that the user did not ask for at this moment.
pub(super) fn leaves_at(
    conn: &mut Conn,
    user: UserId,
    settings: &Settings,
    now: Timestamp,
) -> QueryResult<Timestamp> {
    let lately = notices::texts_since(conn, user, now - HOUR, None)?;
    send_time(conn, user, settings, &lately, now)
}

/// Reschedules the waiting notifications of a user, or of all users, after the quiet hours or the clock were set.
pub(crate) fn reschedule_notices(
    conn: &mut Conn,
    settings: &Settings,
    user: Option<UserId>,
    now: Timestamp,
) -> QueryResult<()> {
    for (notice, user) in notices::waiting(conn, user, now)? {
        let lately = notices::texts_since(conn, user, now - HOUR, Some(notice))?;
        let at = send_time(conn, user, settings, &lately, now)?;
        notices::reschedule(conn, notice, at, now)?;
    }
    Ok(())
}

/// Send time of a notification. `lately` holds the creation times of the other notifications of the last hour.
fn send_time(
    conn: &mut Conn,
    user: UserId,
    settings: &Settings,
    lately: &[Timestamp],
    now: Timestamp,
) -> QueryResult<Timestamp> {
    let own = notices::hours(conn, user)?;
    Ok(match words::leave(own.or(settings.quiet), lately, now, &settings.zone) {
        Leave::Now => now,
        Leave::At(at) => at,
    })
}

/// News about a show for one user.
pub(super) struct Share {
    pub(super) user: UserId,
    pub(super) complete: Vec<u32>,
    episodes: Vec<(u32, u32)>,
    /// Matters, each with the time since when the user has waited for it.
    pub(super) matters: Vec<(String, Timestamp)>,
}

impl Share {
    /// Finds the share of a user, which is added empty if there is none yet.
    pub(super) fn of(user: UserId, shares: &mut Vec<Self>) -> &mut Self {
        let known = shares.iter().position(|share| share.user == user);
        let position = known.unwrap_or_else(|| {
            shares.push(Self { user, complete: vec![], episodes: vec![], matters: vec![] });
            shares.len() - 1
        });
        &mut shares[position]
    }
}

/// Notification of users within one transaction.
pub(super) struct Telling<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
}

impl Telling<'_> {
    fn take(&mut self, group: &Group) -> QueryResult<Take> {
        let ids: Vec<i64> = group.reports.iter().map(|report| report.id).collect();
        arr_events::take(self.conn, &ids, self.now)
    }

    pub(super) fn of_movie(&mut self, group: &Group) -> QueryResult<()> {
        if self.take(group)? == Take::Lost {
            return Ok(());
        }
        let first = group.reports.iter().find_map(|one| {
            let Report::Movie(movie, Copy::First) = &one.report else { return None };
            Some(movie)
        });
        let Some(movie) = first else { return Ok(()) };
        let (instance, catalog_id) = (group.instance.clone(), movie.catalog_id);
        let what = Followed { instance, kind: MediaKind::Movie, catalog_id, season: None };
        let matter = format!("movie:{}:{}", group.instance, movie.catalog_id);
        let (news, mut heard_by) = (words::movie_ready(movie), Vec::new());
        for user in follows::followers(self.conn, &what)? {
            let since = follows::since(self.conn, user, &what)?.unwrap_or(self.now);
            if self.tell(user, Topic::Ready, &[(matter.clone(), since)], &news)? == Hearing::Told {
                heard_by.push(user);
            }
        }
        self.remember(&matter, &heard_by, &news)?;
        follows::end(self.conn, &what, self.now).map(drop)
    }

    pub(super) fn of_show(&mut self, news: &ShowNews) -> QueryResult<Told> {
        let shares = self.shares(news)?;
        if shares.iter().all(|share| share.complete.is_empty()) {
            let mut again: Option<Timestamp> = None;
            for share in &shares {
                let beginning = format!("episode:{}:{}:", news.instance, news.show.catalog_id);
                let last = notices::last_about(self.conn, share.user, &beginning)?;
                // A time ahead of the clock is no measure of how long ago the last notification was.
                let last = last.filter(|last| *last <= self.now);
                again = again.max(last.map(|last| last + EPISODES_EVERY));
            }
            if let Some(at) = again.filter(|at| *at > self.now) {
                return Ok(Told::NotBefore(at));
            }
        }
        if arr_events::take(self.conn, &news.reports, self.now)? == Take::Lost {
            return Ok(Told::Done);
        }
        self.announce(news, shares)?;
        Ok(Told::Done)
    }

    /// Notifies each user of their share, and ends the follows of everything that is complete.
    pub(super) fn announce(&mut self, news: &ShowNews, shares: Vec<Share>) -> QueryResult<()> {
        let mut told: Vec<(News, Vec<UserId>)> = Vec::new();
        for share in shares {
            let words = words::show_ready(&news.show, &share.complete, &share.episodes);
            if self.tell(share.user, Topic::Ready, &share.matters, &words)? == Hearing::Told {
                match told.iter_mut().find(|(known, _)| known.sentence == words.sentence) {
                    Some((_, heard_by)) => heard_by.push(share.user),
                    None => told.push((words, vec![share.user])),
                }
            }
        }
        for (place, (words, heard_by)) in told.iter().enumerate() {
            let matter = format!("show:{}:{}:{place}", news.instance, news.show.catalog_id);
            self.remember(&matter, heard_by, words)?;
        }
        for season in &news.complete {
            follows::end(self.conn, &followed(&news.instance, &news.show, *season), self.now)?;
        }
        if news.is_over {
            let all = Followed { season: None, ..followed(&news.instance, &news.show, 0) };
            follows::end(self.conn, &all, self.now)?;
        }
        Ok(())
    }

    /// Collects the news that each user has waited for and was not notified of yet.
    fn shares(&mut self, news: &ShowNews) -> QueryResult<Vec<Share>> {
        let mut shares: Vec<Share> = Vec::new();
        for season in news.seasons() {
            let what = followed(&news.instance, &news.show, season);
            let of_show = format!("{}:{}:{season}", news.instance, news.show.catalog_id);
            for user in follows::followers(self.conn, &what)? {
                let since = follows::since(self.conn, user, &what)?.unwrap_or(self.now);
                let share = Share::of(user, &mut shares);
                let whole = format!("season:{of_show}");
                let is_complete =
                    news.complete.contains(&season) && !notices::is_noted(self.conn, user, &whole, since)?;
                if is_complete {
                    share.complete.push(season);
                    share.matters.push((whole, since));
                }
                for episode in news.episodes.iter().filter(|(of, _)| *of == season) {
                    let matter = format!("episode:{of_show}:{}", episode.1);
                    if !notices::is_noted(self.conn, user, &matter, since)? {
                        share.matters.push((matter, since));
                        if !is_complete {
                            share.episodes.push(*episode);
                        }
                    }
                }
            }
        }
        shares.retain(|share| !share.matters.is_empty());
        Ok(shares)
    }

    /// Notifies the admins of trouble that they have to check; a health problem that has passed causes no notification.
    pub(super) fn of_trouble(&mut self, group: &Group, service: &str) -> QueryResult<()> {
        if self.take(group)? == Take::Lost {
            return Ok(());
        }
        let Some(last) = group.reports.last() else { return Ok(()) };
        let (what, words) = match &last.report {
            Report::Stuck(of) => (of, words::stuck(of, service)),
            Report::Failed(of) => (of, words::failed(of, service)),
            Report::Ill { check, message } => (check, words::ill(message, service)),
            Report::Well { .. } | Report::Movie(..) | Report::Episode { .. } => return Ok(()),
        };
        let matter = format!("trouble:{}:{what}", group.instance);
        let since = self.now - TROUBLE_EVERY;
        let mut heard_by = Vec::new();
        for admin in users::admins(self.conn)? {
            if notices::wants(self.conn, admin.id)? == Wants::Nothing {
                continue;
            }
            if self.tell(admin.id, Topic::Trouble, &[(matter.clone(), since)], &words)? == Hearing::Told {
                heard_by.push(admin.id);
            }
        }
        self.remember(&matter, &heard_by, &words)
    }

    /// Stores a notification as a shared message that all of its recipients can find. A matter is repeated only at
    /// another time.
    fn remember(&mut self, matter: &str, heard_by: &[UserId], news: &News) -> QueryResult<()> {
        let source = format!("notice:{matter}:{}", self.now.as_millisecond());
        let heard = Heard { words: &news.sentence, by: heard_by, from: None };
        groups::said(self.conn, &source, &heard, self.now)
    }

    /// Notifies one user once for each matter: now, in the morning, or together with notifications that already wait.
    fn tell(
        &mut self,
        user: UserId,
        topic: Topic,
        matters: &[(String, Timestamp)],
        news: &News,
    ) -> QueryResult<Hearing> {
        let person = users::get(self.conn, user)?;
        if person.status != Status::Active || person.opted_out {
            return Ok(Hearing::NotTold);
        }
        let mut ids = Vec::new();
        for (matter, since) in matters {
            if let Noted::New(id) = notices::note(self.conn, user, matter, *since, self.now)? {
                ids.push(id);
            }
        }
        let Some(first) = ids.first() else { return Ok(Hearing::NotTold) };
        // A test user reads it in the console and shares no memory with real ones.
        let hearing = if person.test { Hearing::NotTold } else { Hearing::Told };
        let way = WayBack::to_user(self.conn, &person, self.settings.number.as_ref())?;
        let key = notices::key(topic, *first);
        let told = (ids.as_slice(), news.phrase.as_str());
        if let Some(mut held) = notices::held(self.conn, user, topic, self.now)? {
            held.phrases.push(news.phrase.clone());
            let text = way.notice(&key, &words::together(topic, &held.phrases));
            let segments = u32::try_from(Segments::of(&text.body).count).unwrap_or(u32::MAX);
            notices::say_more(self.conn, held.id, (&text.body, segments), told, self.now)?;
            return Ok(hearing);
        }
        let at = leaves_at(self.conn, user, self.settings, self.now)?;
        notices::queue(self.conn, &way.notice(&key, &news.sentence), at, told, self.now)?;
        Ok(hearing)
    }
}
