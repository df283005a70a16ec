//! Removal requests to the admins, from users who may not delete the title themselves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::approval::{self, ApprovedCall, RecentMessages};
use super::arguments::{approved_arguments, argument_schema, parse_arguments};
use super::formatting::format_media_title;
use super::instance_ref::InstanceRef;
use super::library::ArrInstances;
use super::remove_media::unknown_title;
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, Tool, ToolContext, ToolEffect, ToolError, ToolOutput,
    WRITE_TIMEOUT,
};
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget, TargetFingerprint};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, ToolArguments, ToolAudience, ToolSpec,
};

/// Maximum number of open removal requests per user.
const MOST_WISHES: usize = 5;

pub struct RequestRemoval {
    library: Arc<ArrInstances>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RequestRemovalArgs {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
}

#[async_trait]
impl Tool for RequestRemoval {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "request_removal",
            description: "Ask the admins to delete a movie or show with its files. \
                          The user hears later what they said: do not say it is done.",
            effect_level: EffectLevel::Write,
            audience: ToolAudience::NotDeleters,
            parameters: self.parameters_schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        let args = self.parse_call(arguments)?;
        let place = InstanceRef::find_by_name(&self.library, args.kind, args.instance.as_deref())?;
        Ok(CallReferences { refs: vec![place.media_ref(args.id)], four_k: false })
    }

    async fn run(&self, call: &ApprovedCall, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        let args = self.parse_call(approved_arguments(call)?)?;
        let place = InstanceRef::find_by_name(&self.library, args.kind, args.instance.as_deref())?;
        if world.admins == 0 {
            return Err(no_admin().into());
        }
        let fetched = place.fetch_fingerprint(args.id).await.map_err(|error| place.request_error(&error))?;
        let Some(fingerprint) = fetched else { return Err(unknown_title(args.id).into()) };
        let instance = place.name().to_owned();
        let delete_files = fingerprint.size_bytes > 0;
        let item = DeletionTarget {
            instance,
            kind: args.kind,
            id: args.id,
            delete_files,
            scope: DeletionScope::Whole,
            fingerprint,
        };
        approval::check_deletion_requested(std::slice::from_ref(&item), RecentMessages::from_context(world))?;
        let same = |wish: &DeletionTarget| {
            (&wish.instance, wish.kind, wish.id) == (&item.instance, item.kind, item.id)
        };
        if world.removal_requests.iter().any(same) {
            return Ok(request_result(
                &item,
                "already_asked",
                "The admins were asked already, and have not answered.",
            )
            .into());
        }
        if world.removal_requests.len() >= MOST_WISHES {
            return Err(too_many_requests().into());
        }
        let sentence =
            format!("I asked the admins to delete {}. I'll text you their decision.", format_title(&item));
        let result = request_result(&item, "asked", &sentence);
        Ok(ToolOutput::with_effect(result, ToolEffect::AskAdmins(Box::new(item))))
    }

    /// Returns [`RecoveryOutcome::NotDone`]. A request is stored only together with the result, so without a result no
    /// admin was asked.
    async fn recover_outcome(
        &self,
        _call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        Ok(RecoveryOutcome::NotDone)
    }
}

impl RequestRemoval {
    pub fn new(library: Arc<ArrInstances>) -> Self {
        Self { library }
    }

    fn parameters_schema(&self) -> Value {
        let mut schema = argument_schema::<RequestRemovalArgs>();
        self.library.offer_instances(&mut schema);
        schema
    }

    fn parse_call(&self, arguments: &ToolArguments) -> Result<RequestRemovalArgs, CallFailure> {
        parse_arguments("request_removal", &self.parameters_schema(), arguments)
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
