//! Shared by the tools that change a file: showing a change, applying it, and reporting the result.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

use super::diagnostics::with_new_ones;
use super::files::{cancelled, did_you_mean, location, named, preview, unless_cancelled};
use super::{FileDiff, Preview, ToolContext, ToolError, ToolOutput};
use crate::text::display::counted;
use crate::workspace::{Change, FileChange, FileError, WorkspacePath, first_names, native};

/// How much of a diff the model sees, in bytes.
const SHOWN_DIFF: usize = 4000;
/// How long a change may take to finish after a cancel.
const GRACE: Duration = Duration::from_millis(250);

/// A preview of a change.
pub(super) async fn propose(
    context: &ToolContext,
    verb: &str,
    name: &str,
    change: Change,
) -> Result<Preview, ToolError> {
    let path = context.resolve(name)?;
    match unless_cancelled(context, context.workspace.propose(&path, &change)).await? {
        Ok(change) => Ok(shown_change(context, verb, &path, &change)),
        Err(error) => Err(explained(context, &path, error).await),
    }
}

/// A preview of a change whose `arguments` still stream: at least the file, which is complete once something follows it.
pub(super) async fn sketch(
    context: &ToolContext,
    verb: &str,
    arguments: &Value,
    name: &str,
    change: Option<Change>,
) -> Option<Preview> {
    if arguments
        .as_object()
        .is_none_or(|members| members.len() < 2)
    {
        return None;
    }
    let path = context.resolve(name).ok()?;
    let proposed = match &change {
        Some(change) => unless_cancelled(context, context.workspace.propose(&path, change))
            .await
            .ok()?
            .ok(),
        None => None,
    };
    Some(match proposed {
        Some(change) => shown_change(context, verb, &path, &change),
        None => preview(
            format!("{verb} {}", named(&context.workspace, &path)),
            &path,
            None,
        ),
    })
}

/// Applies a change. If cancelled meanwhile, it has a moment to finish, so that the result can be reported.
pub(super) async fn commit(
    context: &ToolContext,
    name: &str,
    change: Change,
) -> Result<ToolOutput, ToolError> {
    let path = context.resolve(name)?;
    if context.cancel.is_cancelled() {
        return Err(cancelled());
    }
    let done = async {
        match timely(context, context.workspace.commit(&path, &change)).await? {
            Ok(change) => Ok(ToolOutput {
                content: report(&context.shown(&path), &change),
                is_error: change.failure.is_some(),
                locations: vec![location(path.absolute(), first_line(&change))],
                diffs: vec![file_diff(&path, &change)],
                ..ToolOutput::default()
            }),
            Err(error) => Err(explained(context, &path, error).await),
        }
    };
    with_new_ones(context, &[&path], done).await
}

/// The result of `change`, which ends soon after the call is cancelled.
pub(super) async fn timely<T>(
    context: &ToolContext,
    change: impl Future<Output = T>,
) -> Result<T, ToolError> {
    let deadline = async {
        context.cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        done = change => Ok(done),
        () = deadline => Err(ToolError("cancelled while the file was being changed; the change may have been made".to_owned())),
    }
}

pub(super) fn shown_change(
    context: &ToolContext,
    verb: &str,
    path: &WorkspacePath,
    change: &FileChange,
) -> Preview {
    let verb = if change.old_text.is_none() {
        "Create"
    } else {
        verb
    };
    let title = format!("{verb} {}", named(&context.workspace, path));
    let shown = preview(title, path, first_line(change));
    let note = (path.other_names() > 0).then(|| {
        format!(
            "{} has other hard links, which may keep the old content",
            native::shown(path.target())
        )
    });
    Preview {
        diffs: vec![file_diff(path, change)],
        note,
        caution: protection(path).or(shown.caution.clone()),
        ..shown
    }
}

/// Why changing what is at `path` requires approval, if it does.
pub(super) fn protection(path: &WorkspacePath) -> Option<String> {
    path.is_protected().then(|| {
        format!(
            "{} is protected because other programs load or run it",
            native::shown(path.target())
        )
    })
}

pub(super) fn file_diff(path: &WorkspacePath, change: &FileChange) -> FileDiff {
    change.clone().diff_of(path.recorded())
}

pub(super) fn first_line(change: &FileChange) -> Option<usize> {
    change.lines.first().map(|lines| *lines.start())
}

/// The error with a hint where one is known.
pub(super) async fn explained(
    context: &ToolContext,
    path: &WorkspacePath,
    error: FileError,
) -> ToolError {
    match error {
        // Nobody was asked yet, and the error quotes lines of the file.
        FileError::Match { .. } if !context.shows(path) => ToolError(format!(
            "{}: the text to replace was not found exactly once; read the file again, which may require approval",
            path.display()
        )),
        FileError::NotFound(_) => {
            ToolError(format!("{error}{}", did_you_mean(context, path).await))
        }
        error => error.into(),
    }
}

/// The model's report of a change.
pub(super) fn report(name: &str, change: &FileChange) -> String {
    if change.old_text.as_ref() == Some(&change.new_text) {
        return format!("{name} already has exactly this content; nothing was changed.\n");
    }
    let how = change
        .strategy
        .map(|strategy| format!("; matched {strategy}"))
        .unwrap_or_default();
    let mut report = if let Some(failure) = &change.failure {
        format!("{failure}\n{name} may have only a part of the new text.\n")
    } else if change.old_text.is_some() {
        format!("Changed {name}{}{how}.\n", lines(&change.lines))
    } else {
        format!(
            "Created {name} ({}).\n",
            counted(change.new_text.lines().count(), "line")
        )
    };
    for note in &change.notes {
        report += &format!("Note: {note}\n");
    }
    if change.old_text.is_some() {
        report.push_str(&short(&change.clone().diff_of(name.into()).unified()));
    }
    report
}

fn lines(ranges: &[RangeInclusive<usize>]) -> String {
    let range = |range: &RangeInclusive<usize>| match (range.start(), range.end()) {
        (start, end) if start >= end => start.to_string(),
        (start, end) => format!("{start}–{end}"),
    };
    let several = match ranges {
        [] => return String::new(),
        [one] if one.start() >= one.end() => "",
        _ => "s",
    };
    format!(", line{several} {}", first_names(ranges.iter(), range))
}

/// A diff cut after a whole line when it is long.
fn short(diff: &str) -> String {
    if diff.len() <= SHOWN_DIFF {
        return diff.to_owned();
    }
    let shown = diff.split_at(diff.floor_char_boundary(SHOWN_DIFF)).0;
    let shown = shown
        .rsplit_once('\n')
        .map_or("", |(whole_lines, _)| whole_lines);
    let left_out = diff.lines().count() - shown.lines().count();
    format!("{shown}\n[{left_out} more lines of diff]\n")
}

#[cfg(test)]
mod tests {
    use super::{FileChange, report};
    use crate::workspace::Strategy;

    #[test]
    fn reports_what_happened() {
        let check = |old: Option<&str>,
                     new: &str,
                     strategy: Option<Strategy>,
                     notes: &[&str],
                     expected: &str| {
            let change = FileChange {
                strategy,
                lines: vec![2..=3, 5..=5],
                notes: notes.iter().map(|&note| note.to_owned()).collect(),
                ..FileChange::new(old.map(Into::into), new.into())
            };
            assert_eq!(report("a.rs", &change), expected);
        };
        check(None, "a\nb\n", None, &[], "Created a.rs (2 lines).\n");
        check(
            Some("a\n"),
            "a\n",
            None,
            &[],
            "a.rs already has exactly this content; nothing was changed.\n",
        );
        check(
            Some("a\nb\n"),
            "a\nc\n",
            Some(Strategy::Indentation),
            &["the file had changed"],
            "Changed a.rs, lines 2–3, 5; matched with different indentation.\n\
             Note: the file had changed\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
        );
    }

    #[test]
    fn a_long_diff_is_cut_after_a_line() {
        let long = "a line\n".repeat(1000);
        let report = report("a.rs", &FileChange::new(Some("".into()), long.into()));
        assert!(report.len() < 4100, "{}", report.len());
        assert!(report.ends_with("more lines of diff]\n"), "{report}");
    }
}
