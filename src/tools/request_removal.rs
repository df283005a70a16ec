//! Removal requests to the admins, from users who may not delete the title themselves.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::approval::{self, RecentMessages};
use super::formatting::format_media_title;
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, unknown_title};
use super::typed_tool::TypedTool;
use super::{CallReferences, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget, TargetFingerprint};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, ToolAudience,
};

/// Maximum number of open removal requests per user.
const MOST_WISHES: usize = 5;

/// Tool that asks the admins to delete a title.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestRemoval {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
}

impl TypedTool for RequestRemoval {
    const NAME: &'static str = "request_removal";
    const DESCRIPTION: &'static str = "Ask the admins to delete a movie or show with its files. \
                                       The user hears later what they said: do not say it is done.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::CannotDelete;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(place.media_ref(self.id).into())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        if context.admins == 0 {
            return Err(no_admin().into());
        }
        let fetched = place.fetch_fingerprint(self.id).await.map_err(|error| place.request_error(&error))?;
        let Some(fingerprint) = fetched else { return Err(unknown_title(self.id).into()) };
        let instance = place.name().to_owned();
        let delete_files = fingerprint.size_bytes > 0;
        let item = DeletionTarget {
            instance,
            kind: self.kind,
            id: self.id,
            delete_files,
            scope: DeletionScope::Whole,
            fingerprint,
        };
        approval::check_deletion_requested(
            std::slice::from_ref(&item),
            RecentMessages::from_context(context),
        )?;
        let same = |wish: &DeletionTarget| {
            (&wish.instance, wish.kind, wish.id) == (&item.instance, item.kind, item.id)
        };
        if context.removal_requests.iter().any(same) {
            return Ok(request_result(
                &item,
                "already_asked",
                "The admins were asked already, and have not answered.",
            )
            .into());
        }
        if context.removal_requests.len() >= MOST_WISHES {
            return Err(too_many_requests().into());
        }
        let sentence =
            format!("I asked the admins to delete {}. I'll text you their decision.", format_title(&item));
        let result = request_result(&item, "asked", &sentence);
        Ok(ToolOutput::with_effect(result, ToolEffect::AskAdmins(Box::new(item))))
    }
}

fn format_title(item: &DeletionTarget) -> String {
    format_media_title(&item.fingerprint.title, item.fingerprint.year)
}

fn request_result(item: &DeletionTarget, status: &str, sentence: &str) -> CallResult {
    let TargetFingerprint { title, year, .. } = &item.fingerprint;
    CallResult {
        for_model: json!({ "status": status, "title": title, "year": year, "hint": "it is not deleted" }),
        for_user: sentence.to_owned(),
        shown: Vec::new(),
    }
}

fn no_admin() -> CallFailure {
    CallFailure::new(
        FailureCode::NobodyToAsk,
        json!({ "hint": "there is no admin" }),
        Some("There is no admin whom I could ask.".to_owned()),
    )
}

fn too_many_requests() -> CallFailure {
    CallFailure::new(
        FailureCode::TooManyRequests,
        json!({ "open": MOST_WISHES, "hint": "wait until the admins have answered" }),
        Some(
            "You have several requests open already. Please wait until the admins have answered.".to_owned(),
        ),
    )
}
