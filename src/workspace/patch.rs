//! Parses patches in the V4A format (`*** Begin Patch`), which some models are trained on, and diffs as git writes them.
//!
//! Pure: what they say, not where they apply; that is up to [`super::edit`], which is as strict as for every other
//! edit.

mod unified;

pub use unified::changes_permissions;

use crate::text::repair::unescape;
use crate::text::unfenced;

/// The part of a patch for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The path as written in the patch.
    pub path: String,
    /// What happens to it.
    pub action: Action,
}

/// An action on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Creates the file with this text.
    Add(String),
    /// Deletes the file. A diff says the lines that it must begin with.
    Delete(Vec<String>),
    /// Deletes the file and creates it again with this text.
    Replace(String),
    /// Changes parts of the file, and possibly its name.
    Update {
        /// The changes; empty if the file is only renamed.
        chunks: Vec<Chunk>,
        /// Its new name.
        moved_to: Option<String>,
    },
}

/// Lines to find and their replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Lines somewhere before the chunk (after `@@`), outermost first: they choose between equal matches.
    pub anchors: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Whether a diff says the numbers of its lines.
    pub is_numbered: bool,
    /// Whether it is at the end of the file.
    pub at_end: bool,
    /// Whether the file ends with a line break afterwards, where a diff says so.
    pub newline: Option<bool>,
}

/// A line of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Stays. As written in the patch: some models omit the leading blank.
    Context(String),
    /// Is removed.
    Removed(String),
    /// Is added.
    Added(String),
}

/// Why a text is not a patch, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the patch cannot be read: {0}")]
pub struct PatchError(String);

/// The files of a patch, in order.
///
/// # Errors
/// The beginning is missing, a line belongs to no file, or a file has no changes.
pub fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    // All of it may be escaped once more: then it is one line, which no patch is.
    let escaped = (!patch.trim().contains('\n') && patch.contains("\\n")).then(|| unescape(patch));
    let patch = unfenced(escaped.as_deref().unwrap_or(patch));
    // If the headings end in CRLF too, the endings say nothing about the files.
    let is_crlf = patch
        .split('\n')
        .next()
        .is_some_and(|first| first.ends_with('\r'));
    let plain = is_crlf.then(|| patch.replace("\r\n", "\n"));
    let patch = plain.as_deref().unwrap_or(patch);
    let is_mark = |line: &str| matches!(mark(line), Some(Mark::Begin));
    if !patch.lines().any(is_mark)
        && let Some(patch) = unified::as_v4a(patch)?.or_else(|| unified::of_blocks(patch))
    {
        return parse_v4a(&patch);
    }
    if let Some(begin) = patch.lines().find(|line| is_mark(line.trim_start())) {
        let (indent, _) = begin.split_at(begin.len() - begin.trim_start().len());
        return parse_v4a(dedented(patch, indent).as_deref().unwrap_or(patch));
    }
    match patch.find(BEGIN) {
        // After a command, such as `apply_patch`.
        Some(at) => parse_v4a(patch.split_at(at).1),
        None => match patch.trim_start().lines().next().and_then(heading) {
            Some(_) => parse_v4a(&format!("{BEGIN}\n{}", patch.trim_start())),
            None => parse_v4a(patch),
        },
    }
}

const BEGIN: &str = "*** Begin Patch";
/// What begins the note of a diff below a last line without a line break, whatever language it is in.
const NO_NEWLINE: &str = "\\ ";

/// A patch whose lines are all indented as its first one is.
fn dedented(patch: &str, indent: &str) -> Option<String> {
    if indent.is_empty() {
        return None;
    }
    let mut dedented = String::new();
    for line in patch.lines() {
        let line = line
            .strip_prefix(indent)
            .or(line.trim().is_empty().then_some(""))?;
        dedented.extend([line, "\n"]);
    }
    Some(dedented)
}

fn parse_v4a(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut files: Vec<FilePatch> = Vec::new();
    // Empty lines without a sign in a file to add, which count if another line follows.
    let mut blank = 0;
    // Models sometimes forget the last line. What the token limit cuts is incomplete JSON and does not get this far.
    let (mut has_begun, mut is_open) = (false, false);
    let mut outside = String::new();
    let mut lines = patch.trim_end_matches('\n').split('\n').peekable();
    while let Some(written) = lines.next() {
        let line = written.strip_suffix('\r').unwrap_or(written);
        // Outside the patch there are no lines of files, so its own two marks may be indented there, as in Codex.
        let is_outside = !has_begun || lines.peek().is_none();
        let bare = line.trim();
        let is_mark = matches!(mark(bare), Some(Mark::Begin | Mark::End));
        let line = if is_outside && is_mark { bare } else { line };
        if let Some(FilePatch {
            action: Action::Add(content),
            ..
        }) = files.last_mut()
        {
            if line.is_empty() && is_open {
                blank += 1;
                continue;
            }
            if line.starts_with('+') {
                content.extend(std::iter::repeat_n('\n', blank));
            }
            blank = 0;
        }
        match mark(line) {
            // A patch may be followed by another one.
            Some(Mark::Begin) => (has_begun, is_open) = (true, true),
            Some(Mark::End) => is_open = false,
            Some(Mark::File(file)) if is_open => files.push(file),
            Some(Mark::File(file)) if has_begun => {
                let path = file.path;
                return Err(PatchError(format!(
                    "the section for {path} comes after `*** End Patch`"
                )));
            }
            // Words around the patch.
            None if files.is_empty() && matches!(line.trim(), "" | "...") => {}
            None if is_open => {
                let ending = written.split_at(line.len()).1;
                body(files.last_mut(), line, ending)?;
            }
            // Words around the patch, and the end of a fence or heredoc.
            Some(Mark::File(_)) | None => outside.extend([line, "\n"]),
        }
    }
    let is_diff = unified::as_v4a(&outside).map_or(true, |diff| diff.is_some());
    if is_diff || unified::of_blocks(&outside).is_some() {
        return Err(PatchError(
            "a diff is outside `*** Begin Patch` and `*** End Patch`; put it between them, as sections".to_owned(),
        ));
    }
    if !has_begun {
        return Err(PatchError(
            "it does not begin with a line `*** Begin Patch`".to_owned(),
        ));
    }
    finished(files)
}

/// A line that divides a patch. It begins in the first column: a line of a file has a sign before it, if only a blank.
enum Mark {
    Begin,
    End,
    File(FilePatch),
}

fn mark(line: &str) -> Option<Mark> {
    let words = starless(line)
        .strip_prefix("***")?
        .trim_matches(['*', ' ', ':']);
    match words.to_ascii_lowercase().as_str() {
        "begin patch" => Some(Mark::Begin),
        "end patch" => Some(Mark::End),
        _ => heading(line).map(Mark::File),
    }
}

/// A line that divides a patch, without the stars that some models write at its end too.
fn starless(line: &str) -> &str {
    let line = line.trim_end();
    line.strip_suffix("***")
        .filter(|line| !line.is_empty())
        .unwrap_or(line)
        .trim_end()
}

fn heading(line: &str) -> Option<FilePatch> {
    let (keyword, path) = starless(line).strip_prefix("***")?.split_once(':')?;
    let keyword = keyword.trim().to_ascii_lowercase();
    let action = match keyword.strip_suffix(" file")? {
        "add" | "create" | "new" => Action::Add(String::new()),
        "delete" | "remove" => Action::Delete(Vec::new()),
        "update" | "modify" | "edit" | "change" => Action::Update {
            chunks: Vec::new(),
            moved_to: None,
        },
        _ => return None,
    };
    Some(FilePatch {
        path: path.trim().to_owned(),
        action,
    })
}

fn body(file: Option<&mut FilePatch>, line: &str, ending: &str) -> Result<(), PatchError> {
    let stray = || {
        PatchError(format!(
            "the line {line:?} belongs to no file; begin with `*** Update File: PATH`"
        ))
    };
    match &mut file.ok_or_else(stray)?.action {
        Action::Add(content) if line.starts_with(NO_NEWLINE) => {
            content.truncate(content.trim_end_matches(['\r', '\n']).len());
        }
        // Nothing is in it yet, so a hunk's header says nothing.
        Action::Add(content) if content.is_empty() && line.starts_with("@@") => {}
        Action::Add(content) => {
            let line = line.strip_prefix('+').ok_or_else(|| {
                PatchError(format!(
                    "in an added file, every line begins with `+`, but one is {line:?}"
                ))
            })?;
            content.extend([line, ending, "\n"]);
        }
        Action::Delete(lines) => match line.strip_prefix('-') {
            Some(line) => lines.push(line.to_owned()),
            None if line.trim().is_empty() || line.starts_with(NO_NEWLINE) => {}
            None => return Err(stray()),
        },
        // Made of two sections, once all are read.
        Action::Replace(_) => return Err(stray()),
        Action::Update { chunks, moved_to } => match line.strip_prefix("*** Move to:") {
            Some(path) => *moved_to = Some(starless(path).trim().to_owned()),
            None => update(chunks, line, ending),
        },
    }
    Ok(())
}

fn update(chunks: &mut Vec<Chunk>, line: &str, ending: &str) {
    if let Some(anchor) = line.strip_prefix("@@") {
        // What git says of a file before its first hunk is none of its lines.
        let is_said = |line: &Line| match line {
            Line::Context(text) => !text.starts_with(' '),
            Line::Removed(text) => text.starts_with("-- "),
            Line::Added(text) => text.starts_with("++ "),
        };
        let is_added = |line: &Line| matches!(line, Line::Added(_));
        // A comment that is removed (`--- x` in SQL) has no other name below it.
        if let [first] = chunks.as_slice()
            && first.anchors.is_empty()
            && first.lines.iter().all(is_said)
            && (!first.changes() || first.lines.iter().any(is_added))
        {
            chunks.clear();
        }
        // Some write three.
        let anchor = anchor.trim_start_matches('@').trim_end();
        let anchor = anchor
            .strip_suffix('@')
            .filter(|it| it.ends_with("@@"))
            .unwrap_or(anchor);
        // Consecutive anchors belong to the following chunk.
        if chunks.last().is_none_or(|chunk| !chunk.lines.is_empty()) {
            chunks.push(Chunk::default());
        }
        let written = anchor.trim().trim_end_matches("@@").trim();
        let anchor = without_numbers(written);
        if let Some(chunk) = chunks.last_mut() {
            chunk.is_numbered |= anchor != written;
            let anchors = (!anchor.is_empty()).then(|| anchor.to_owned());
            chunk.anchors.extend(anchors);
        }
        return;
    }
    if chunks.is_empty() {
        chunks.push(Chunk::default());
    }
    let Some(chunk) = chunks.last_mut() else {
        return;
    };
    if starless(line) == "*** End of File" {
        chunk.at_end = true;
        return;
    }
    if line.starts_with(NO_NEWLINE) {
        chunk.at_end = true;
        chunk.newline = Some(matches!(chunk.lines.last(), Some(Line::Removed(_))));
        return;
    }
    // An empty line between the end of the file and the next section.
    if chunk.at_end && line.is_empty() {
        return;
    }
    chunk.lines.push(match line.split_at_checked(1) {
        Some(("-", removed)) => Line::Removed(format!("{removed}{ending}")),
        Some(("+", added)) => Line::Added(format!("{added}{ending}")),
        _ => Line::Context(format!("{line}{ending}")),
    });
}

/// The line endings of a chunk say something only where it changes nothing else.
fn forget_endings(chunk: &mut Chunk) {
    let plain = |text: &str| text.strip_suffix('\r').unwrap_or(text).to_owned();
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for line in &chunk.lines {
        match line {
            Line::Removed(text) => removed.push(plain(text)),
            Line::Added(text) => added.push(plain(text)),
            Line::Context(_) => {}
        }
    }
    if removed.is_empty() || removed != added {
        for line in &mut chunk.lines {
            let (Line::Removed(text) | Line::Added(text) | Line::Context(text)) = line;
            *text = plain(text);
        }
    }
}

/// An anchor without the line numbers that a diff has there: `-1,2 +1,3 @@ fn main() {`.
fn without_numbers(anchor: &str) -> &str {
    let (numbers, rest) = anchor.split_once("@@").unwrap_or((anchor, ""));
    if are_numbers(numbers) {
        rest.trim()
    } else {
        anchor
    }
}

/// Whether a diff has these words between `@@` and `@@`.
fn are_numbers(words: &str) -> bool {
    let is_number = |part: &str| {
        let digits = part.trim_start_matches(['-', '+']);
        digits.len() < part.len() && digits.bytes().all(|it| it.is_ascii_digit() || it == b',')
    };
    words.trim().split(' ').all(is_number)
}

fn finished(files: Vec<FilePatch>) -> Result<Vec<FilePatch>, PatchError> {
    let mut files = joined(files);
    if files.is_empty() {
        return Err(PatchError("it names no file".to_owned()));
    }
    for file in &mut files {
        if let Action::Update { chunks, .. } = &mut file.action {
            chunks.iter_mut().for_each(forget_endings);
        }
        if let Action::Update {
            chunks,
            moved_to: None,
        } = &file.action
            && chunks.iter().all(|chunk| !chunk.changes())
        {
            return Err(PatchError(format!(
                "it changes nothing in {}: no line begins with `+` or `-`",
                file.path
            )));
        }
    }
    Ok(files)
}

/// The sections of a patch, those that change or replace the same file as one.
fn joined(files: Vec<FilePatch>) -> Vec<FilePatch> {
    let mut joined: Vec<FilePatch> = Vec::new();
    for file in files {
        let same = joined.iter_mut().find(|before| before.path == file.path);
        match (same.map(|before| &mut before.action), file.action) {
            (
                Some(Action::Update {
                    chunks,
                    moved_to: None,
                }),
                Action::Update {
                    chunks: more,
                    moved_to: None,
                },
            ) => chunks.extend(more),
            (Some(deleted @ Action::Delete(_)), Action::Add(content)) => {
                *deleted = Action::Replace(content);
            }
            (_, action) => joined.push(FilePatch { action, ..file }),
        }
    }
    joined
}

impl Chunk {
    /// Whether any line is added or removed.
    pub fn changes(&self) -> bool {
        self.lines
            .iter()
            .any(|line| !matches!(line, Line::Context(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_parsed_in_order() {
        let patch = "*** Begin Patch\n*** Add File: a\n+1\n+\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n\
            @@ class X\n@@ def y\n one\n-two\n+2\n*** End of File\n*** End Patch\n";
        let chunk = Chunk {
            anchors: vec!["class X".to_owned(), "def y".to_owned()],
            lines: vec![
                Line::Context(" one".to_owned()),
                Line::Removed("two".to_owned()),
                Line::Added("2".to_owned()),
            ],
            at_end: true,
            ..Chunk::default()
        };
        let update = Action::Update {
            chunks: vec![chunk],
            moved_to: Some("d".to_owned()),
        };
        let file = |path: &str, action| FilePatch {
            path: path.to_owned(),
            action,
        };
        let expected = [
            file("a", Action::Add("1\n\n".to_owned())),
            file("b", Action::Delete(Vec::new())),
            file("c", update),
        ];
        assert_eq!(parse(patch).unwrap(), expected);
    }

    #[test]
    fn patches_may_lack_the_end_marker_and_diffs_are_patches() {
        let patch =
            parse("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch").unwrap();
        assert_eq!(
            parse("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n").unwrap(),
            patch
        );
        assert_eq!(parse("*** Update File: a\n@@\n-x\n+y\n").unwrap(), patch);
        assert_eq!(
            parse("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n").unwrap(),
            parse("*** Update File: a\n@@ -1 +1 @@\n-x\n+y\n").unwrap()
        );
        let indented = "  *** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n *** End Patch \n\n";
        assert_eq!(parse(indented).unwrap(), patch);
    }

    #[test]
    fn lines_of_a_file_are_never_headings() {
        let headings = [
            "Delete File: keep.txt",
            "Add File: new.txt",
            "Update File: other.txt",
            "Move to: there.txt",
        ];
        for mark in headings
            .into_iter()
            .chain(["End Patch", "Begin Patch", "End of File"])
        {
            for sign in [" ", "-", "+", "  ", "\t"] {
                let line = format!("{sign}*** {mark}");
                let files = parse(&format!(
                    "*** Begin Patch\n*** Update File: a\n@@\n-x\n{line}\n+y\n*** End Patch"
                ));
                let [
                    FilePatch {
                        path,
                        action:
                            Action::Update {
                                chunks,
                                moved_to: None,
                            },
                    },
                ] = &files.unwrap()[..]
                else {
                    panic!("{line:?} is taken for more than a line");
                };
                assert_eq!(
                    (path.as_str(), chunks[0].lines.len(), chunks[0].at_end),
                    ("a", 3, false),
                    "{line:?}"
                );
            }
        }
    }

    #[test]
    fn a_removed_comment_is_not_the_name_of_a_file() {
        let patch =
            "*** Begin Patch\n*** Update File: a.sql\n--- comment\n@@\n-x\n+y\n*** End Patch";
        let [
            FilePatch {
                action: Action::Update { chunks, .. },
                ..
            },
        ] = &parse(patch).unwrap()[..]
        else {
            panic!("it is one file");
        };
        let first = Line::Removed("-- comment".to_owned());
        assert_eq!((chunks.len(), &chunks[0].lines), (2, &vec![first]));
    }

    #[test]
    fn patches_after_each_other_are_one() {
        let one =
            |file: &str| format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch\n");
        for between in ["", "\n", "And the other:\n", "```\n\n```diff\n"] {
            let files = parse(&format!("{}{between}{}", one("a"), one("b"))).unwrap();
            assert_eq!(
                files
                    .iter()
                    .map(|file| file.path.as_str())
                    .collect::<Vec<_>>(),
                ["a", "b"],
                "{between:?}"
            );
        }
        refused(
            &format!("{}*** Delete File: b\n", one("a")),
            "the section for b comes after",
        );
    }

    #[track_caller]
    fn refused(patch: &str, word: &str) {
        let error = parse(patch).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }

    #[test]
    fn non_patches_are_rejected() {
        refused("", "Begin Patch");
        refused("*** Begin Patch\n-x\n*** End Patch", "belongs to no file");
        refused(
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "every line begins with `+`",
        );
        refused(
            "*** Begin Patch\n*** Update File: a\n x\n*** End Patch",
            "changes nothing in a",
        );
        refused("*** Begin Patch\n*** End Patch", "names no file");
    }
}
