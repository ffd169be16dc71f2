//! Quick fixes that need no model: those a language server prefers, if they only import or format.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FutureExt as _, join_all};
use serde_json::Value;

use super::edits::{changed, open_texts};
use super::question::{NAME, uri};
use crate::text::Upkeep;
use crate::tools::batch::{self, Item, What};
use crate::tools::edit_file::EditFile;
use crate::tools::{Pending, Preview, Tool, ToolContext, ToolKind, ToolOutput, TypedTool as _};
use crate::workspace::Change;
use crate::workspace::diagnostics::Diagnostic;
use crate::workspace::language::{Answer, DocumentEdits, Operation, Question};

/// How many problems are looked up at once.
const PROBLEMS: usize = 20;
/// How long the language servers have.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The fixes of some problems, as one call. No model can make it.
pub struct QuickFixes {
    files: Vec<Item>,
    /// What was fixed, and the source of the problem.
    pub fixed: Vec<(Upkeep, String)>,
}

impl QuickFixes {
    /// The fixes of these problems; `None` if there are none.
    pub async fn find(context: &ToolContext, problems: &[Diagnostic]) -> Option<Self> {
        if !context
            .workspace
            .editor()
            .operations()
            .contains(&Operation::QuickFixes)
        {
            return None;
        }
        let open = open_texts(context);
        let asked = problems
            .iter()
            .take(PROBLEMS)
            .map(|problem| fix(context, &open, problem));
        let (mut documents, mut fixed) = (Vec::<DocumentEdits>::new(), Vec::new());
        for (problem, found) in problems.iter().zip(join_all(asked).await) {
            let Some((found, upkeep)) = found else {
                continue;
            };
            let document = documents.iter_mut().find(|other| other.uri == found.uri);
            match document {
                // Two problems may have one fix; what overlaps another fix waits for the next look.
                Some(document) if found.edits.iter().any(|edit| meets(document, edit)) => continue,
                Some(document) => document.edits.extend(found.edits),
                None => documents.push(found),
            }
            fixed.push((upkeep, problem.source.clone()));
        }
        let mut files = Vec::new();
        for document in &documents {
            files.extend(changed(context, &open, document).await.ok()?);
        }
        (!files.is_empty()).then_some(Self { files, fixed })
    }
}

fn meets(document: &DocumentEdits, (range, text): &(crate::text::Range, String)) -> bool {
    document.edits.iter().any(|(other, other_text)| {
        let is_same = (other, other_text) == (range, text);
        is_same || (other.start < range.end && range.start < other.end)
    })
}

/// The fix of one problem, in its own file.
async fn fix(
    context: &ToolContext,
    open: &HashMap<PathBuf, Arc<str>>,
    problem: &Diagnostic,
) -> Option<(DocumentEdits, Upkeep)> {
    let path = context.workspace.resolve_path(&problem.path).ok()?;
    let question = Question {
        uri: Some(uri(context, &path).ok()?),
        position: Some(problem.start),
        preferred: true,
        ..Question::new(Operation::QuickFixes)
    };
    let asked = tokio::time::timeout(TIMEOUT, context.workspace.editor().language(question));
    let answer = context
        .cancel
        .run_until_cancelled(asked)
        .await?
        .ok()?
        .ok()?;
    let Answer::Edits(mut documents) = answer else {
        return None;
    };
    documents.retain(|document| !document.edits.is_empty());
    let document = documents.pop().filter(|_| documents.is_empty())?;
    let item = changed(context, open, &document).await.ok()??;
    let What::Change(Change::Exact { before, after }) = item.what else {
        return None;
    };
    let upkeep = Upkeep::of(&before, &after).filter(|_| item.path.real() == path.real())?;
    Some((document, upkeep))
}

impl Tool for QuickFixes {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &'static str {
        "Apply the quick fixes that language servers prefer."
    }

    fn parameters(&self) -> Value {
        Value::Null
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Edit
    }

    fn rule_name(&self) -> &str {
        EditFile::NAME
    }

    fn preview<'a>(
        &'a self,
        context: &'a ToolContext,
        _arguments: &'a Value,
    ) -> Pending<'a, Preview> {
        async move {
            let preview = batch::preview(context, &self.files).await?;
            let what = match self.fixed.as_slice() {
                [_] => "the quick fix".to_owned(),
                several => format!("{} quick fixes", several.len()),
            };
            let paths = self.files.iter().map(|file| file.path.absolute());
            let names = context.workspace.named(paths.collect::<Vec<_>>().iter());
            Ok(Preview {
                title: format!("Apply {what} in {names}"),
                ..preview
            })
        }
        .boxed()
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        _arguments: &'a Value,
    ) -> Pending<'a, ToolOutput> {
        async move {
            for file in &self.files {
                context.resolve(&file.path.absolute().to_string_lossy())?;
            }
            batch::apply(context, &self.files).await
        }
        .boxed()
    }
}
