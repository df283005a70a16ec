//! Tool that asks the admins to delete a title, for users who may not delete it themselves.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::approval::{self, DeletionSource};
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
const MAX_OPEN_REQUESTS: usize = 5;

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
    const DESCRIPTION: &'static str = "Ask the admins to delete a title with its files. Code tells the user their decision: it is not \
        deleted yet.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::CannotDelete;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(instance.media_ref(self.id).into())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        if context.admins == 0 {
            return Err(no_admin().into());
        }
        let fingerprint =
            instance.fetch_fingerprint(self.id).await.map_err(|error| instance.request_error(&error))?;
        let Some(fingerprint) = fingerprint else { return Err(unknown_title(self.id).into()) };
        let delete_files = fingerprint.size_bytes > 0;
        let item = DeletionTarget {
            instance: instance.name().to_owned(),
            kind: self.kind,
            id: self.id,
            delete_files,
            scope: DeletionScope::Whole,
            fingerprint,
        };
        approval::check_deletion_requested(
            std::slice::from_ref(&item),
            DeletionSource::from_context(context),
        )?;
        let is_same_item = |requested: &DeletionTarget| {
            (&requested.instance, requested.kind, requested.id) == (&item.instance, item.kind, item.id)
        };
        if context.removal_requests.iter().any(is_same_item) {
            return Ok(request_result(
                &item,
                "already_asked",
                "I already asked the admins. They have not decided yet.",
            )
            .into());
        }
        if context.removal_requests.len() >= MAX_OPEN_REQUESTS {
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
        json!({ "hint": "there is no admin to ask: say so" }),
        Some("There is no admin I could ask.".to_owned()),
    )
}

fn too_many_requests() -> CallFailure {
    CallFailure::new(
        FailureCode::TooManyRequests,
        json!({ "open": MAX_OPEN_REQUESTS, "hint": "wait until the admins have answered" }),
        Some("You already have several open requests. Please wait until the admins have decided.".to_owned()),
    )
}
