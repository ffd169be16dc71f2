//! `src/main.rs:12` in a chat file is a place: `textDocument/definition` goes there, `textDocument/documentLink` lists
//! them all. Only files of the workspace count.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::protocol::lsp;
use crate::server::Server;
use crate::server::dispatch::{Later, later};
use crate::text::{Encoding, LineIndex, Range};
use crate::workspace::native::{file_of, uri_of};

/// More links than this are not looked for.
const LINKS: usize = 1000;

/// A place that a piece of text names.
#[derive(Debug, PartialEq, Eq)]
struct Mention<'a> {
    bytes: std::ops::Range<usize>,
    name: &'a str,
    /// Counted from 1.
    line: Option<u32>,
}

impl Server {
    /// Answers `textDocument/definition`.
    pub fn chat_definition(&mut self, params: lsp::DefinitionParams) -> Later<Value> {
        let place = params.text_document_position_params;
        let folders = self.folders_of(&place.text_document.uri.0);
        let encoding = self.documents.encoding();
        let at = place.position.into();
        self.with_chat(&place.text_document.uri.0, move |text| {
            let lines = LineIndex::new(text);
            let at = lines.offset(text, at, encoding);
            let touched =
                mentions(text).find(|mention| mention.bytes.start <= at && at <= mention.bytes.end);
            json!(touched.and_then(|mention| location(&folders, &mention)))
        })
    }

    /// Answers `textDocument/documentLink`.
    pub fn chat_links(&mut self, params: lsp::DocumentLinkParams) -> Later<Value> {
        let uri = params.text_document.uri.0;
        let (folders, encoding) = (self.folders_of(&uri), self.documents.encoding());
        self.with_chat(&uri, move |text| json!(links(text, &folders, encoding)))
    }

    /// The result of `make` on a chat file's text, off the server's task because it reads the disk.
    fn with_chat<F: FnOnce(&str) -> Value + Send + 'static>(
        &self,
        uri: &str,
        make: F,
    ) -> Later<Value> {
        let text = self.chat_text(uri);
        later(async move {
            let made = tokio::task::spawn_blocking(move || make(&text)).await;
            Ok(made.unwrap_or_default())
        })
    }

    /// Where a chat works, and what names in it are relative to: the workspace folders; if there is none, that of the file
    /// it is about.
    pub(super) fn folders_of(&self, uri: &str) -> Vec<PathBuf> {
        let there = self.client.folders().filter(|folder| folder.is_dir());
        let mut folders: Vec<_> = there.collect();
        if folders.is_empty() {
            folders.extend(file_of(uri).and_then(|path| path.parent().map(Path::to_owned)));
        }
        folders
    }
}

fn links(text: &str, folders: &[PathBuf], encoding: Encoding) -> Vec<Value> {
    let lines = LineIndex::new(text);
    let link = |mention: Mention<'_>| {
        let (uri, line) = target(folders, &mention)?;
        let target = line.map_or_else(|| uri.clone(), |line| format!("{uri}#L{line}"));
        Some(json!({ "range": lines.range(text, &mention.bytes, encoding), "target": target }))
    };
    mentions(text).take(LINKS).filter_map(link).collect()
}

fn location(folders: &[PathBuf], mention: &Mention<'_>) -> Option<Value> {
    let (uri, line) = target(folders, mention)?;
    let line = line.unwrap_or(1).saturating_sub(1) as usize;
    Some(json!({ "uri": uri, "range": Range::of_lines(line..line) }))
}

/// The file of that name in the first folder that has one.
fn target(folders: &[PathBuf], mention: &Mention<'_>) -> Option<(String, Option<u32>)> {
    let mut paths = folders
        .iter()
        .map(|folder| (folder, folder.join(mention.name)));
    let (_, path) = paths
        .find(|(folder, path)| path.starts_with(folder) && !is_above(path) && path.is_file())?;
    Some((uri_of(&path)?, mention.line))
}

/// Whether a path may lead out of its folder by its name.
fn is_above(path: &Path) -> bool {
    path.components()
        .any(|part| part == std::path::Component::ParentDir)
}

/// Everything that looks like the name of a file, with a line after it or without.
fn mentions(text: &str) -> impl Iterator<Item = Mention<'_>> {
    let is_between = |c: char| c.is_whitespace() || "`'\"()[]<>{},;|*".contains(c);
    text.split(is_between).filter_map(move |word| {
        let word = word
            .trim_start_matches('@')
            .trim_end_matches(['.', ':', '!', '?']);
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        let (name, line) = split(word);
        let is_name = name.contains(['.', '/'])
            && name.chars().any(char::is_alphanumeric)
            && !name.contains(':');
        is_name.then(|| Mention {
            bytes: start..start + word.len(),
            name,
            line,
        })
    })
}

/// A name, and the line after it, as in `:12`, `:12:3`, `:12-14` or `#L12`.
fn split(word: &str) -> (&str, Option<u32>) {
    let (name, behind) = word
        .split_once("#L")
        .or_else(|| word.split_once(':'))
        .unwrap_or((word, ""));
    let digits = behind.len()
        - behind
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    match behind.get(..digits).and_then(|digits| digits.parse().ok()) {
        Some(line) => (name, Some(line)),
        None if behind.is_empty() => (name, None),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_lines_are_found_in_surrounding_text() {
        let found = |text: &'static str| -> Vec<(&str, Option<u32>)> {
            mentions(text)
                .map(|mention| (mention.name, mention.line))
                .collect()
        };
        assert_eq!(
            found("see `src/main.rs:12`, [it](a.rs#L3-L7)."),
            [("src/main.rs", Some(12)), ("a.rs", Some(3))]
        );
        assert_eq!(
            found("- ✓ Edit src/lib.rs\n@a/b.md:3:9: no."),
            [("src/lib.rs", None), ("a/b.md", Some(3))]
        );
        assert_eq!(found("https://a.example/b"), []);
        assert_eq!(found("… and/or ..."), [("and/or", None)]);
    }

    #[test]
    fn paths_outside_the_workspace_are_not_links() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("in");
        std::fs::create_dir(&inner).unwrap();
        for file in ["in/a.rs", "secret"] {
            std::fs::File::create(folder.path().join(file)).unwrap();
        }
        let check = |name: &str, expected: bool| {
            let mention = Mention {
                bytes: 0..0,
                name,
                line: None,
            };
            assert_eq!(
                target(std::slice::from_ref(&inner), &mention).is_some(),
                expected,
                "{name}"
            );
        };
        check("a.rs", true);
        check("b.rs", false);
        check("../secret", false);
        check("/etc/passwd", false);
    }
}
