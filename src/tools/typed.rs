//! Adapts a tool with typed arguments to [`Tool`], so that a tool's file contains only the tool itself.

use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Pending, PlanEntry, Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput};
use crate::calls::arguments::{self, Unknown};

/// A tool whose arguments are a type: their schema is derived from it, and they are validated before the tool runs.
/// Implementations are [`Tool`]s.
pub trait TypedTool: Send + Sync + 'static {
    /// Its arguments. The model reads the comments on the fields.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// See [`Tool::name`].
    const NAME: &'static str;
    /// See [`Tool::description`].
    const DESCRIPTION: &'static str;
    /// See [`Tool::kind`].
    const KIND: ToolKind;
    /// See [`Tool::rule_name`].
    const RULE_NAME: &'static str = Self::NAME;
    /// Arguments of a correct call, shown to a model after invalid ones.
    const EXAMPLE: &'static str;

    /// [`Self::DESCRIPTION`], or another one where it depends on the system.
    fn described(&self) -> &str {
        Self::DESCRIPTION
    }

    /// The schema as this tool offers it; all of it unless a tool offers less.
    fn offered(&self, schema: Value) -> Value {
        schema
    }

    /// See [`Tool::meant`].
    fn meant(&self, _arguments: &Value) -> Option<Arc<dyn Tool>> {
        None
    }

    /// See [`Tool::instead`].
    fn instead(_context: &ToolContext, _arguments: &Value) -> Option<Arc<dyn Tool>> {
        None
    }

    /// See [`Tool::preview`].
    fn preview(
        context: &ToolContext,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Preview, ToolError>> + Send;

    /// See [`Tool::sketch`].
    fn sketch(
        _context: &ToolContext,
        _arguments: &Value,
    ) -> impl Future<Output = Option<Preview>> + Send {
        async { None }
    }

    /// See [`Tool::plan`].
    fn plan(_arguments: Self::Arguments) -> Option<Vec<PlanEntry>> {
        None
    }

    /// See [`Tool::run`].
    fn run(
        context: &ToolContext,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

impl<T: TypedTool> Tool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn description(&self) -> &str {
        self.described()
    }

    fn parameters(&self) -> Value {
        self.offered(Value::clone(&arguments::schema::<T::Arguments>()))
    }

    fn meant(&self, arguments: &Value) -> Option<Arc<dyn Tool>> {
        T::meant(self, arguments)
    }

    fn instead(&self, context: &ToolContext, arguments: &Value) -> Option<Arc<dyn Tool>> {
        T::instead(context, arguments)
    }

    fn kind(&self) -> ToolKind {
        T::KIND
    }

    fn rule_name(&self) -> &str {
        T::RULE_NAME
    }

    fn plan(&self, arguments: &Value) -> Option<Vec<PlanEntry>> {
        T::plan(T::Arguments::deserialize(arguments).ok()?)
    }

    fn preview<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, Preview> {
        async {
            let (arguments, _) = arguments::read(arguments, T::EXAMPLE, unknown(T::KIND))?;
            T::preview(context, arguments).await
        }
        .boxed()
    }

    fn sketch<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Option<Preview>> {
        T::sketch(context, arguments).boxed()
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, ToolOutput> {
        async {
            let (arguments, note) = arguments::read(arguments, T::EXAMPLE, unknown(T::KIND))?;
            let mut output = T::run(context, arguments).await?;
            output.content.extend(note.map(|note| format!("\n{note}")));
            Ok(output)
        }
        .boxed()
    }
}

/// Unknown arguments are ignored only for calls that change nothing.
fn unknown(kind: ToolKind) -> Unknown {
    if kind.is_read_only() {
        Unknown::LeftOut
    } else {
        Unknown::Refused
    }
}
