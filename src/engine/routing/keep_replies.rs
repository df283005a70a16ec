//! Answers about titles that could go, and the list of kept titles, which code answers without a model.

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::making_room::keep_command::{self, ChosenTitles, KeepCommand, parse_keep_command};
use crate::conversation::making_room::messages;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{User, UserRole};
use crate::engine::making_room::phases;
use crate::store::QueryResult;
use crate::store::library::kept_titles::{self, KeptTitle, TitleToKeep};
use crate::store::library::space_answers::{self, AskedTitle};
use crate::store::library::space_proposals::{ProposalAnswer, ProposedTitleState};

impl TurnStart<'_> {
    pub(super) fn run_keep_command(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let text = match parse_keep_command(&events[0].body) {
            Some(KeepCommand::Keep(chosen)) => self.answer_question(user, &chosen, ProposalAnswer::Keep)?,
            Some(KeepCommand::Free(chosen)) => self.answer_question(user, &chosen, ProposalAnswer::Free)?,
            Some(KeepCommand::Unkeep(chosen)) => self.unkeep(user, &chosen)?,
            Some(KeepCommand::ListKept) | None => self.list_kept(user)?,
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    /// Stores the answer of a user about titles of the open proposal, and returns the reply.
    fn answer_question(
        &mut self,
        user: &User,
        chosen: &ChosenTitles,
        answer: ProposalAnswer,
    ) -> QueryResult<String> {
        let asked = space_answers::load_asked_titles(self.conn, user.id)?;
        if asked.is_empty() {
            return Ok(messages::NO_PROPOSAL.to_owned());
        }
        let names: Vec<String> = asked.iter().map(|title| title.title.clone()).collect();
        let Some(indexes) = choose(chosen, &names) else { return Ok(messages::NO_SUCH_TITLE.to_owned()) };
        let is_chosen = |title: &&AskedTitle| match answer {
            ProposalAnswer::Keep => title.state != ProposedTitleState::Deleted,
            ProposalAnswer::Free => title.state == ProposedTitleState::Asked,
        };
        let titles: Vec<&AskedTitle> =
            indexes.into_iter().map(|index| &asked[index]).filter(is_chosen).collect();
        if titles.is_empty() {
            return Ok(messages::DECIDED_ALREADY.to_owned());
        }
        let names: Vec<String> = titles.iter().map(|title| title.title.clone()).collect();
        let mut kept_until = self.now;
        for title in titles {
            space_answers::store_answer(self.conn, (user.id, title), answer, self.now)?;
            if answer == ProposalAnswer::Keep {
                let AskedTitle { kind, catalog_id, title, year, .. } = title;
                let kept = TitleToKeep { kind: *kind, catalog_id: *catalog_id, title, year: *year };
                kept_until = kept_titles::keep_title(self.conn, user.id, kept, self.now)?;
            }
        }
        phases::advance_proposal(self.conn, self.settings, None, self.now)?;
        Ok(match answer {
            ProposalAnswer::Keep => messages::format_kept(&names, kept_until, &self.settings.zone),
            ProposalAnswer::Free => messages::format_freed(&names),
        })
    }

    /// Loads the kept titles that a user may list: all for an admin, else the user's own.
    fn load_own_kept(&mut self, user: &User) -> QueryResult<Vec<KeptTitle>> {
        let mut kept = kept_titles::load_kept_titles(self.conn, self.now)?;
        kept.retain(|title| title.user == user.id || user.rights.role == UserRole::Admin);
        Ok(kept)
    }

    fn list_kept(&mut self, user: &User) -> QueryResult<String> {
        let kept = self.load_own_kept(user)?;
        if kept.is_empty() {
            return Ok(messages::NOTHING_KEPT.to_owned());
        }
        // Stored titles have no rating, so they are not named to a person with a cap.
        if !user.rights.rating_caps().is_unlimited() {
            return Ok(messages::format_kept_count(kept.len()));
        }
        let titles: Vec<_> = kept.into_iter().map(|title| (title.title, title.kept_until)).collect();
        Ok(messages::format_kept_list(&titles, &self.settings.zone))
    }

    fn unkeep(&mut self, user: &User, chosen: &ChosenTitles) -> QueryResult<String> {
        let kept = self.load_own_kept(user)?;
        let all: Vec<String> = kept.iter().map(|title| title.title.clone()).collect();
        let is_limited = !user.rights.rating_caps().is_unlimited();
        let chosen = match chosen {
            // A person with a cap has no list with numbers.
            ChosenTitles::Numbers(_) if is_limited => None,
            chosen => choose(chosen, &all),
        };
        let Some(indexes) = chosen.filter(|indexes| !indexes.is_empty()) else {
            let nothing = if kept.is_empty() { messages::NOTHING_KEPT } else { messages::NOT_KEPT };
            return Ok(nothing.to_owned());
        };
        let names: Vec<String> = indexes.iter().map(|index| all[*index].clone()).collect();
        let chosen: Vec<&KeptTitle> = indexes.into_iter().map(|index| &kept[index]).collect();
        for title in &chosen {
            kept_titles::unkeep_title(self.conn, title)?;
        }
        let mut still_kept = Vec::new();
        for title in chosen {
            if kept_titles::is_kept(self.conn, title.kind, title.catalog_id, self.now)? {
                still_kept.push(title.title.clone());
            }
        }
        let unkept: Vec<String> = names.into_iter().filter(|name| !still_kept.contains(name)).collect();
        Ok(match (is_limited, still_kept.is_empty()) {
            (true, true) => messages::UNKEPT.to_owned(),
            (true, false) => messages::KEPT_BY_OTHERS.to_owned(),
            (false, _) => messages::format_unkept(&unkept, &still_kept),
        })
    }
}

/// Returns the indexes of the chosen titles; `None` if a number or a name is not in the list.
fn choose(chosen: &ChosenTitles, titles: &[String]) -> Option<Vec<usize>> {
    match chosen {
        ChosenTitles::All => Some((0..titles.len()).collect()),
        ChosenTitles::Numbers(numbers) => {
            let index = |number: &u8| {
                let index = usize::from(*number).checked_sub(1)?;
                (index < titles.len()).then_some(index)
            };
            let mut indexes: Vec<usize> = numbers.iter().map(index).collect::<Option<_>>()?;
            indexes.sort_unstable();
            indexes.dedup();
            Some(indexes)
        }
        ChosenTitles::Named(words) => keep_command::find_named(words, titles).map(|index| vec![index]),
    }
}
