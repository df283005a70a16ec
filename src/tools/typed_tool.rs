//! Tools with typed arguments. A tool is a struct whose fields are its arguments. [`adapt_tool`] and [`adapt_deletion`]
//! turn it into a [`Tool`], with a generated schema, parsing, and messages about bad arguments.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::ApprovedCall;
use super::arguments::parsing::parse_arguments;
use super::arguments::schema::{
    InstanceChoice, OfferedChoices, argument_schema, offered_schema, without_arguments,
};
use super::deferred_addition::{QuotaKeeper, queue_for_retry};
use super::deletion_outcomes::{frozen_item, not_done};
use super::library::ArrInstances;
use super::own_space::space_limit::measure_space;
use super::preference::with_preferred_instance;
use super::{
    CallReferences, InterruptedRun, READ_TIMEOUT, RecoveryOutcome, Tool, ToolContext, ToolError, ToolOutput,
    WRITE_TIMEOUT,
};
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, ToolArguments, ToolAudience, ToolSpec, UserRights,
};

/// Tool that reads or writes. Its fields are the arguments of a call.
pub trait TypedTool: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    const NAME: &'static str;
    /// Description for the model.
    const DESCRIPTION: &'static str;
    const EFFECT_LEVEL: EffectLevel;
    const AUDIENCE: ToolAudience;
    /// Arguments about what people have watched, which are offered only with a media server.
    const VIEWING_ARGUMENTS: &'static [&'static str] = &[];
    /// Arguments about a Seerr, which are offered only if titles are requested there.
    const SEERR_ARGUMENTS: &'static [&'static str] = &[];
    /// True if the tool reads the titles that count toward the space of the user.
    const READS_OWN_TITLES: bool = false;
    /// True if the tool reads the records by which titles that could go are judged.
    const READS_SPACE_RECORDS: bool = false;
    /// True if the tool reads who could watch something together.
    const GATHERS_PEOPLE: bool = false;
    const TIMEOUT: Duration = match Self::EFFECT_LEVEL {
        EffectLevel::Read => READ_TIMEOUT,
        EffectLevel::Write | EffectLevel::Destructive => WRITE_TIMEOUT,
    };

    /// Returns the description for the model with these instances and sources.
    fn description(_library: &ArrInstances) -> &'static str {
        Self::DESCRIPTION
    }

    /// Returns the arguments that are not offered with these instances and sources. A call may have them nevertheless, and
    /// its answer says what is missing.
    fn hidden_arguments(_library: &ArrInstances) -> &'static [&'static str] {
        &[]
    }

    /// Returns the values of the argument `instance`. The argument is omitted if there is only one.
    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        library.selectable_names()
    }

    /// Returns whether the tool can do anything with the configured instances. Otherwise it is not offered.
    fn is_supported(_library: &ArrInstances) -> bool {
        true
    }

    /// Returns the values of the argument `quality`. The list is empty if the tool has no such argument, or no profile is
    /// known yet.
    fn quality_names(_library: &ArrInstances, _rights: UserRights) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether the call reads what people have watched.
    fn reads_viewing(&self) -> bool {
        false
    }

    /// Checks what the schema cannot express, and returns the ids in the call, before the tool runs.
    fn check(&self, _library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        Ok(CallReferences::default())
    }

    fn run(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// Determines the outcome of a run whose response was lost. The default is for reads, and for
    /// tools that only have effects, which are stored together with the result or not at all: they are repeated.
    fn recover(
        &self,
        _library: &ArrInstances,
        _context: &ToolContext,
    ) -> impl Future<Output = Result<RecoveryOutcome, ToolError>> + Send {
        async { Ok(RecoveryOutcome::NotDone) }
    }

    /// Returns the instance that a stored fact prefers, for a call that leaves the choice open.
    fn preferred_instance(
        _library: &ArrInstances,
        _facts: &UserFacts,
        _rights: UserRights,
    ) -> Option<&'static str> {
        None
    }

    /// Returns the request that is retried later if the instance is down. Returns `None` if the call is not retried.
    fn deferrable_request(&self, _library: &ArrInstances) -> Option<RequestedTitle> {
        None
    }

    /// Returns the failure result described at [`Tool::not_done_failure`].
    fn not_done_failure(_title: Option<&str>) -> CallFailure {
        not_done()
    }
}

/// Tool that deletes after a confirmation. Its fields are the arguments of a call, which are used only to build the
/// confirmation prompt.
pub trait DeletionTool: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    const NAME: &'static str;
    /// Description for the model.
    const DESCRIPTION: &'static str;

    /// Returns the values of the argument `instance`.
    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        library.selectable_names()
    }

    /// Returns the ids in the call.
    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure>;

    /// Fetches each item and freezes the contents of the confirmation prompt.
    fn preview_items(
        &self,
        library: &ArrInstances,
    ) -> impl Future<Output = Result<Vec<DeletionTarget>, ToolError>> + Send;

    /// Returns the item in its current state, for a new confirmation prompt. `None` if it is gone.
    fn refresh_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> impl Future<Output = Result<Option<DeletionTarget>, ToolError>> + Send;

    fn delete_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> impl Future<Output = Result<CallResult, ToolError>> + Send;

    /// Determines the outcome of a deletion whose response was lost.
    fn recover_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> impl Future<Output = Result<RecoveryOutcome, ToolError>> + Send;
}

pub fn adapt_tool<T: TypedTool>(library: &Arc<ArrInstances>) -> Arc<dyn Tool> {
    let spec = SpecParts {
        description: T::description(library),
        effect_level: T::EFFECT_LEVEL,
        audience: T::AUDIENCE,
        hidden: T::hidden_arguments(library),
    };
    let viewing = if library.media_servers.is_empty() { T::VIEWING_ARGUMENTS } else { &[] };
    let seerr = if library.requests.is_none() { T::SEERR_ARGUMENTS } else { &[] };
    let omitted = [viewing, seerr].concat();
    let schema = without_arguments(argument_schema::<T>(&T::instance_names(library)), &omitted);
    Arc::new(ToolAdapter::<T>::new(T::NAME, spec, schema, library))
}

pub fn adapt_deletion<T: DeletionTool>(library: &Arc<ArrInstances>) -> Arc<dyn Tool> {
    let spec = SpecParts {
        description: T::DESCRIPTION,
        effect_level: EffectLevel::Destructive,
        audience: ToolAudience::CanDelete,
        hidden: &[],
    };
    let schema = argument_schema::<T>(&T::instance_names(library));
    Arc::new(DeletionAdapter(ToolAdapter::<T>::new(T::NAME, spec, schema, library)))
}

/// Adapter from a typed tool to [`Tool`]. The schema by which arguments are parsed is stored as a value.
struct ToolAdapter<T> {
    spec: ToolSpec,
    schema: Value,
    /// Schema without the arguments that are not offered.
    visible_schema: Value,
    library: Arc<ArrInstances>,
    arguments: PhantomData<fn() -> T>,
}

/// Parts of a specification that do not depend on the instances.
struct SpecParts {
    description: &'static str,
    effect_level: EffectLevel,
    audience: ToolAudience,
    /// Arguments that are not offered.
    hidden: &'static [&'static str],
}

struct DeletionAdapter<T>(ToolAdapter<T>);

impl<T: DeserializeOwned + JsonSchema> ToolAdapter<T> {
    fn new(
        name: &'static str,
        SpecParts { description, effect_level, audience, hidden }: SpecParts,
        schema: Value,
        library: &Arc<ArrInstances>,
    ) -> Self {
        let choices = OfferedChoices { instance: InstanceChoice::Offered, quality_names: Vec::new() };
        let visible_schema = without_arguments(schema.clone(), hidden);
        let parameters = offered_schema(&visible_schema, &choices).into();
        Self {
            spec: ToolSpec { name, description, effect_level, audience, parameters },
            schema,
            visible_schema,
            library: library.clone(),
            arguments: PhantomData,
        }
    }

    fn offered_spec(&self, choices: &OfferedChoices) -> ToolSpec {
        ToolSpec { parameters: offered_schema(&self.visible_schema, choices).into(), ..self.spec.clone() }
    }

    fn parse(&self, arguments: &ToolArguments) -> Result<T, CallFailure> {
        parse_arguments(self.spec.name, &self.schema, arguments)
    }
}

#[async_trait]
impl<T: TypedTool> Tool for ToolAdapter<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn offered_choices(&self, rights: UserRights) -> Option<OfferedChoices> {
        let choices = || OfferedChoices {
            instance: InstanceChoice::from_rights(rights),
            quality_names: T::quality_names(&self.library, rights),
        };
        T::is_supported(&self.library).then(choices)
    }

    fn offered_spec(&self, choices: &OfferedChoices) -> ToolSpec {
        self.offered_spec(choices)
    }

    fn timeout(&self) -> Duration {
        T::TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        self.parse(arguments)?.check(&self.library)
    }

    async fn run(&self, call: &ApprovedCall, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = call.arguments().ok_or_else(|| {
            ToolError::Fatal(anyhow::anyhow!("run a tool with arguments on a deletion item"))
        })?;
        let tool = self.parse(arguments)?;
        let context = &*measure_space::<T>(context, &self.library).await;
        let library = self.library.limited_to(&context.age_limit).await;
        match (tool.run(&library, context).await, tool.deferrable_request(&library)) {
            (Err(ToolError::CallFailed(failure)), Some(request)) if failure.code.may_succeed_later() => {
                let quota = match &self.library.requests {
                    Some(_) => QuotaKeeper::Seerr,
                    None => QuotaKeeper::Household,
                };
                queue_for_retry(&failure, (request, arguments), quota, context)
            }
            (outcome, _) => outcome,
        }
    }

    fn reads_viewing(&self, arguments: &ToolArguments) -> bool {
        let has_accounts = !self.library.media_servers.is_empty() || self.library.requests.is_some();
        has_accounts && self.parse(arguments).is_ok_and(|tool| tool.reads_viewing())
    }

    fn reads_own_titles(&self) -> bool {
        T::READS_OWN_TITLES
    }

    fn reads_space_records(&self) -> bool {
        T::READS_SPACE_RECORDS
    }

    fn gathers_people(&self) -> bool {
        T::GATHERS_PEOPLE
    }

    fn apply_preferences(
        &self,
        arguments: &ToolArguments,
        facts: &UserFacts,
        rights: UserRights,
    ) -> Option<ToolArguments> {
        with_preferred_instance(arguments, T::preferred_instance(&self.library, facts, rights)?)
    }

    fn not_done_failure(&self, title: Option<&str>) -> CallFailure {
        T::not_done_failure(title)
    }

    async fn recover_outcome(
        &self,
        call: InterruptedRun<'_>,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        match call {
            InterruptedRun::Call(arguments) => {
                let context = &*measure_space::<T>(context, &self.library).await;
                let library = self.library.limited_to(&context.age_limit).await;
                self.parse(arguments)?.recover(&library, context).await
            }
            InterruptedRun::Item(_) => Ok(RecoveryOutcome::Unknown),
        }
    }
}

#[async_trait]
impl<T: DeletionTool> Tool for DeletionAdapter<T> {
    fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    fn offered_choices(&self, rights: UserRights) -> Option<OfferedChoices> {
        Some(OfferedChoices { instance: InstanceChoice::from_rights(rights), quality_names: Vec::new() })
    }

    fn offered_spec(&self, choices: &OfferedChoices) -> ToolSpec {
        self.0.offered_spec(choices)
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        self.0.parse(arguments)?.check(&self.0.library)
    }

    async fn run(&self, call: &ApprovedCall, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        T::delete_item(frozen_item(call)?, &self.0.library).await.map(ToolOutput::from)
    }

    async fn preview_items(
        &self,
        arguments: &ToolArguments,
        context: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        let library = self.0.library.limited_to(&context.age_limit).await;
        self.0.parse(arguments)?.preview_items(&library).await
    }

    async fn refresh_items(
        &self,
        items: &[DeletionTarget],
        context: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        let library = self.0.library.limited_to(&context.age_limit).await;
        let mut fresh = Vec::new();
        for item in items {
            fresh.extend(T::refresh_item(item, &library).await?);
        }
        Ok(fresh)
    }

    async fn recover_outcome(
        &self,
        call: InterruptedRun<'_>,
        _context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        match call {
            InterruptedRun::Item(item) => T::recover_item(item, &self.0.library).await,
            InterruptedRun::Call(_) => Ok(RecoveryOutcome::Unknown),
        }
    }
}
