//! Tool that proposes what people can watch tonight, and lets them vote.

mod candidates;
pub mod gathering;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::library::ArrInstances;
use super::typed_tool::TypedTool;
use super::{LOOKUP_TIMEOUT, TitleVote, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallResult, EffectLevel, MediaKind, ToolAudience};
use crate::conversation::viewer_accounts::WatchSharing;
use crate::conversation::votes::tonight::{TONIGHT, TonightChoice, TonightTitle, VOTE_STARTED};
use crate::conversation::votes::tonight_messages::{self, TonightPeople, TonightVote};
use crate::conversation::votes::{CheckedLimit, VOTE_PERIOD};
use candidates::{TonightFindings, TonightWishes, find_titles};
use gathering::Participants;

/// Tool that proposes titles of the library which people can watch together.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeTonight {
    /// Default: all.
    #[serde(default)]
    people: Vec<String>,
    minutes: Option<u16>,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
}

impl TypedTool for ProposeTonight {
    const NAME: &'static str = TONIGHT;
    const DESCRIPTION: &'static str = "Let people vote on movies new to all.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Chat;
    const GATHERS_PEOPLE: bool = true;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn reads_viewing(&self) -> bool {
        true
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let participants = Participants::find(&self.people, context)?;
        let has_vote = match context.audience {
            Audience::Author | Audience::Agent => !participants.asked().is_empty(),
            Audience::Room => true,
        };
        if let Some(obstacle) = context.gathering.obstacle.filter(|_| has_vote) {
            return Err(obstacle.into_failure().into());
        }
        let kind = self.kind.unwrap_or(MediaKind::Movie);
        let limit = participants.age_limit(&context.age_limit);
        let shown = library.limited_to(&limit).await;
        let wishes = TonightWishes { kind, max_minutes: self.minutes };
        let findings = find_titles(wishes, &participants, &shown, context.now).await?;
        let cap = match kind {
            MediaKind::Movie => limit.caps.movies,
            MediaKind::Series => limit.caps.shows,
        };
        let proposal =
            Proposal { findings, participants, limit: CheckedLimit { kind, cap }, library, context };
        let output = proposal.into_output(has_vote, self.minutes)?;
        Ok(output)
    }
}

/// Titles that were found for the people who take part.
struct Proposal<'a> {
    findings: TonightFindings,
    participants: Participants<'a>,
    limit: CheckedLimit,
    library: &'a ArrInstances,
    context: &'a ToolContext,
}

impl Proposal<'_> {
    fn into_output(self, has_vote: bool, max_minutes: Option<u16>) -> Result<ToolOutput, ToolError> {
        let titles = match &self.findings.choice {
            TonightChoice::NotAnswered => {
                let labels = self.library.media_servers.labels();
                return Ok(answer("not_answered", tonight_messages::format_not_answered(&labels)).into());
            }
            TonightChoice::Titles(titles) => titles.clone(),
        };
        let output = match titles.as_slice() {
            [] => answer("nothing_found", tonight_messages::format_nothing(max_minutes)).into(),
            // One title is no choice.
            [_, _, ..] if has_vote => self.start_vote(&titles)?,
            titles => self.suggest(titles),
        };
        Ok(match self.findings.has_read_viewing {
            true => output.and_effect(ToolEffect::MentionViewing),
            false => output,
        })
    }

    fn start_vote(&self, titles: &[TonightTitle]) -> Result<ToolOutput, ToolError> {
        let closes_at = self.context.now + VOTE_PERIOD;
        let (unlinked, zone) = (self.unlinked(), &self.context.zone);
        let asked = self.participants.asked();
        let (vote, status) = match self.context.audience {
            Audience::Room => {
                let has_unlinked = !unlinked.is_empty();
                let vote = tonight_messages::format_poll(titles, has_unlinked, self.limit, (closes_at, zone));
                (vote, "poll_on_its_way")
            }
            Audience::Author | Audience::Agent => {
                let names: Vec<String> = asked.iter().map(|person| person.name.clone()).collect();
                let people = self.describe_people(&names, &unlinked);
                let vote = tonight_messages::format_vote(titles, &people, self.limit, (closes_at, zone));
                (vote, VOTE_STARTED)
            }
        };
        let TonightVote { question, text } =
            vote.map_err(|invalid| ToolError::Fatal(anyhow::Error::new(invalid)))?;
        let result = CallResult {
            for_model: json!({ "status": status, "options": question.options(),
                "note": "the question was sent for you: add nothing about it" }),
            for_user: text,
            shown: Vec::new(),
        };
        let asked = asked.iter().map(|person| person.user).collect();
        Ok(ToolOutput::with_effect(result, ToolEffect::StartVote(Box::new(TitleVote { question, asked }))))
    }

    /// Lists titles without a vote.
    fn suggest(&self, titles: &[TonightTitle]) -> ToolOutput {
        let unlinked = self.unlinked();
        let people = self.describe_people(&[], &unlinked);
        let text = match self.context.audience {
            Audience::Author | Audience::Agent => tonight_messages::format_suggestions(titles, &people),
            Audience::Room => {
                let silent = TonightPeople { unlinked: &[], says_unseen: false, ..people };
                tonight_messages::format_suggestions(titles, &silent)
            }
        };
        let names: Vec<Value> = titles.iter().map(|title| json!(title.name())).collect();
        CallResult {
            for_model: json!({ "status": "suggested", "titles": names, "reply": text }),
            for_user: text,
            shown: Vec::new(),
        }
        .into()
    }

    fn describe_people<'s>(&'s self, asked: &'s [String], unlinked: &'s [String]) -> TonightPeople<'s> {
        let asker = self.context.gathering.people.iter().find(|person| person.is_asker);
        TonightPeople {
            asker: asker.map_or("", |person| &person.name),
            asked,
            unreachable: &self.participants.unreachable,
            unlinked,
            is_alone: self.participants.is_alone(),
            says_unseen: self.says_unseen(unlinked),
        }
    }

    /// Returns the people whose watching is unknown; none without a media server, which knows nobody.
    fn unlinked(&self) -> Vec<String> {
        match self.library.media_servers.is_empty() {
            true => Vec::new(),
            false => self.participants.unlinked(),
        }
    }

    /// Returns whether the answer may say that nobody has seen the titles: if everything is known of everybody, and the
    /// household shares it or only the user is concerned.
    fn says_unseen(&self, unlinked: &[String]) -> bool {
        let is_shared = self.context.viewers.sharing == WatchSharing::Household;
        let is_known = self.findings.has_read_viewing && self.findings.is_complete && unlinked.is_empty();
        is_known && (is_shared || self.participants.is_alone())
    }
}

fn answer(status: &str, text: String) -> CallResult {
    CallResult { for_model: json!({ "status": status, "reply": text }), for_user: text, shown: Vec::new() }
}
