//! `read_file`: a file's lines with their numbers, as in the editor.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::changes::explained;
use super::files::{blocking, location, named, preview, unless_cancelled};
use super::list_files::ListFiles;
use super::{Image, Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::calls::arguments::{Unknown, read};
use crate::text::LineIndex;
use crate::text::display::{counted, escape_line};
use crate::workspace::{FileError, FileText, Source, WorkspacePath};

const MAX_LINES: usize = 2000;
const MAX_BYTES: usize = 60_000;
const MAX_LINE: usize = 1000;

/// The prefix of names for commands' outputs.
const OUTPUT: &str = "output:";

pub(super) struct ReadFile;

/// What to read.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// First line, from 1.
    offset: Option<usize>,
    /// Number of lines.
    limit: Option<usize>,
    /// Other files to read with it.
    #[serde(default)]
    more_paths: Vec<String>,
}

impl Arguments {
    fn files(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.path)
            .chain(&self.more_paths)
            .map(String::as_str)
    }
}

impl TypedTool for ReadFile {
    type Arguments = Arguments;
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Read a text file as the editor has it, unsaved changes included. Each line \
        comes as its number, a tab and the text; number and tab are not part of the file.";
    const KIND: ToolKind = ToolKind::Read;
    const EXAMPLE: &'static str = r#"{"path": "src/main.rs", "offset": 1, "limit": 200}"#;

    /// A folder is listed instead.
    fn instead(context: &ToolContext, arguments: &Value) -> Option<Arc<dyn Tool>> {
        let (arguments, _): (Arguments, _) =
            read(arguments, Self::EXAMPLE, Unknown::LeftOut).ok()?;
        let is_folder = context
            .resolve(&arguments.path)
            .is_ok_and(|path| path.is_folder());
        is_folder.then(|| Arc::new(ListFiles) as Arc<dyn Tool>)
    }

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let lines = match (arguments.offset, arguments.limit) {
            (None, None) => String::new(),
            (offset, None) => format!(" from line {}", offset.unwrap_or(1)),
            (offset, Some(limit)) => {
                let first = offset.unwrap_or(1).max(1);
                format!(" lines {first}–{}", first.saturating_add(limit.max(1)) - 1)
            }
        };
        if arguments.path.starts_with(OUTPUT) {
            return Ok(Preview::titled(format!(
                "Read {}{lines}",
                escape_line(&arguments.path)
            )));
        }
        let (mut names, mut shown) = (Vec::new(), Preview::default());
        for name in arguments.files() {
            let path = context.resolve(name)?;
            names.push(named(&context.workspace, &path));
            let one = preview(String::new(), &path, arguments.offset);
            shown.locations.extend(one.locations);
            shown.targets.extend(one.targets);
            shown.caution = shown.caution.or(one.caution);
        }
        shown.title = format!("Read {}{lines}", names.join(", "));
        Ok(shown)
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let offset = arguments.offset.unwrap_or(1).max(1);
        let limit = arguments.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
        if let Some(number) = arguments.path.strip_prefix(OUTPUT) {
            let content = output(context, number, offset, limit).await?;
            return Ok(content.into());
        }
        let bytes = context.room(MAX_BYTES) / (1 + arguments.more_paths.len());
        if arguments.more_paths.is_empty() {
            return file(context, &arguments.path, (offset, limit), bytes).await;
        }
        let mut all = ToolOutput::default();
        for name in arguments.files() {
            let (content, one) = match file(context, name, (offset, limit), bytes).await {
                Ok(one) => (one.content.clone(), one),
                Err(ToolError(why)) => (format!("[{why}]\n"), ToolOutput::default()),
            };
            all.content += &format!("==> {} <==\n{content}", escape_line(name));
            all.locations.extend(one.locations);
            all.images.extend(one.images);
        }
        if all.locations.is_empty() {
            Err(ToolError(all.content))
        } else {
            Ok(all)
        }
    }
}

/// These lines of a file, at most `bytes` bytes.
async fn file(
    context: &ToolContext,
    name: &str,
    (offset, limit): (usize, usize),
    bytes: usize,
) -> Result<ToolOutput, ToolError> {
    let path = context.resolve(name)?;
    let name = context.shown(&path);
    let file = match unless_cancelled(context, context.workspace.read(&path)).await? {
        Ok(file) => file,
        Err(FileError::TooLarge { size, .. }) => {
            let lines = path.lines((offset, limit), bytes as u64);
            let (text, more) = unless_cancelled(context, lines).await??;
            let content = format!(
                "[{size} bytes, from disk]\n{}",
                numbered(&text, offset, more)
            );
            let locations = vec![location(path.absolute(), Some(offset))];
            return Ok(ToolOutput {
                content,
                locations,
                ..ToolOutput::default()
            });
        }
        Err(error @ FileError::Binary(..)) => return show(context, &path, error).await,
        Err(error) => return Err(explained(context, &path, error).await),
    };
    let head = head(&file);
    let page = blocking(context, move |_, _| {
        page(&file.text, (offset, limit), bytes)
    })
    .await?;
    let page = page.map_err(|lines| {
        ToolError(format!(
            "{name} has only {}; {offset} is past the end",
            counted(lines, "line")
        ))
    })?;
    Ok(ToolOutput {
        content: head + &page,
        locations: vec![location(path.absolute(), Some(offset))],
        ..ToolOutput::default()
    })
}

/// An image, for a model that accepts images; the `error` of any other binary file.
async fn show(
    context: &ToolContext,
    path: &WorkspacePath,
    error: FileError,
) -> Result<ToolOutput, ToolError> {
    let name = context.shown(path);
    let bytes = unless_cancelled(context, path.bytes()).await?;
    let bytes = bytes.unwrap_or_default();
    let Some(mime_type) = Image::format(&bytes) else {
        return Err(error.into());
    };
    if bytes.len() > Image::LARGEST {
        let (size, most) = (bytes.len(), Image::LARGEST);
        return Err(ToolError(format!(
            "{name} is an image of {size} bytes; the limit is {most}"
        )));
    }
    let content = format!("[{name}: {mime_type}, {} bytes]\n", bytes.len());
    Ok(ToolOutput {
        content,
        images: vec![Image::new(mime_type, &bytes)],
        locations: vec![location(path.absolute(), None)],
        ..ToolOutput::default()
    })
}

/// Numbered lines of a command's output.
async fn output(
    context: &ToolContext,
    number: &str,
    offset: usize,
    limit: usize,
) -> Result<String, ToolError> {
    let found = number
        .parse()
        .ok()
        .and_then(|number| context.shell.output(number));
    let output = found.ok_or_else(|| {
        ToolError(format!(
            "{OUTPUT}{} is no longer available",
            escape_line(number)
        ))
    })?;
    let bytes = context.room(MAX_BYTES) as u64;
    let read = blocking(context, move |_, _| output.lines(offset, limit, bytes)).await?;
    let (text, more) =
        read.map_err(|error| ToolError(format!("the output cannot be read: {error}")))?;
    Ok(numbered(&text, offset, more))
}

/// Lines from `offset` on of a partially read file, and whether there are more.
fn numbered(text: &str, offset: usize, more: bool) -> String {
    let mut page = String::new();
    for (line, number) in text.lines().zip(offset..) {
        page += &format!("{number}\t{}\n", cut(line));
    }
    if more {
        let next = offset + text.lines().count();
        page += &format!("[continue with offset {next}]\n");
    }
    if page.is_empty() {
        format!("[no line {offset}]\n")
    } else {
        page
    }
}

/// Unusual properties of a file, on one line.
fn head(file: &FileText) -> String {
    let stored = Some(file.stored.shown(&file.text)).filter(|stored| stored != "UTF-8, LF");
    let unsaved = matches!(file.source, Source::Buffer { unsaved: true, .. });
    let facts = stored
        .into_iter()
        .chain(unsaved.then(|| "unsaved changes in the editor".to_owned()))
        .chain(
            file.changed
                .then(|| "changed by someone else since you last read it".to_owned()),
        );
    let facts = facts.collect::<Vec<_>>().join("; ");
    if facts.is_empty() {
        facts
    } else {
        format!("[{facts}]\n")
    }
}

/// Up to `limit` numbered lines from line `offset`, at most `bytes` bytes, and a note of what was left out. `Err` with
/// the number of lines if there is no such line.
fn page(text: &str, (offset, limit): (usize, usize), bytes: usize) -> Result<String, usize> {
    let index = LineIndex::new(text);
    let ends_with_break = index.bytes(text, index.count() - 1).is_empty();
    let total = index.count() - usize::from(ends_with_break);
    if total == 0 {
        return if offset == 1 {
            Ok("[the file is empty]\n".to_owned())
        } else {
            Err(0)
        };
    }
    if offset > total {
        return Err(total);
    }
    let last = total.min(offset.saturating_add(limit) - 1);
    let mut page = String::new();
    let mut next = offset;
    while next <= last && page.len() < bytes {
        let line = text
            .get(index.bytes(text, next - 1))
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r']);
        page += &format!("{next}\t{}\n", cut(line));
        next += 1;
    }
    if next <= total || offset > 1 {
        let more = if next <= total {
            format!("; continue with offset {next}")
        } else {
            String::new()
        };
        page += &format!("[lines {offset}–{} of {total}{more}]\n", next - 1);
    }
    Ok(page)
}

/// The beginning of a very long line, and how much is missing.
fn cut(line: &str) -> String {
    let end = line.floor_char_boundary(MAX_LINE);
    match line.split_at_checked(end) {
        Some((shown, rest)) if !rest.is_empty() => {
            format!("{shown}… [{} more bytes in this line]", rest.len())
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, page};

    #[test]
    fn lines_are_numbered_and_omissions_reported() {
        let check = |text: &str, offset: usize, limit: usize, expected: Result<&str, usize>| {
            assert_eq!(
                page(text, (offset, limit), MAX_BYTES),
                expected.map(str::to_owned),
                "{text:?} {offset} {limit}"
            );
        };
        check("a\nb\n", 1, 9, Ok("1\ta\n2\tb\n"));
        check("a\nb", 1, 9, Ok("1\ta\n2\tb\n"));
        check("a\r\nb\r\n", 1, 9, Ok("1\ta\n2\tb\n"));
        check("\n\n", 1, 9, Ok("1\t\n2\t\n"));
        check(
            "a\nb\nc\n",
            1,
            2,
            Ok("1\ta\n2\tb\n[lines 1–2 of 3; continue with offset 3]\n"),
        );
        check("a\nb\nc\n", 2, 9, Ok("2\tb\n3\tc\n[lines 2–3 of 3]\n"));
        check("a\nb\nc\n", 4, 9, Err(3));
        check("", 1, 9, Ok("[the file is empty]\n"));
        check("", 2, 9, Err(0));
        check("a\n", usize::MAX, usize::MAX, Err(1));
    }

    #[test]
    fn huge_lines_are_cut_at_a_character() {
        let text = format!("x{}", "é".repeat(1_000_000));
        let page = page(&text, (1, 1), MAX_BYTES).unwrap();
        assert!(page.len() < 1100, "{}", page.len());
        assert!(
            page.ends_with("é… [1999002 more bytes in this line]\n"),
            "{page}"
        );
    }

    #[test]
    fn a_page_is_bounded_in_bytes() {
        let text = format!("{}\n", "x".repeat(900)).repeat(500);
        assert!(
            page(&text, (1, 500), 4000)
                .unwrap()
                .ends_with("[lines 1–5 of 500; continue with offset 6]\n")
        );
        let page = page(&text, (1, 500), MAX_BYTES).unwrap();
        assert!(page.len() < 62_000, "{}", page.len());
        assert!(
            page.ends_with("[lines 1–67 of 500; continue with offset 68]\n"),
            "{page}"
        );
    }
}
