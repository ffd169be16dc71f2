//! What is sent: the text around the place, and the beginnings of other open files in the same language.

use std::path::Path;

use super::{Place, clean};
use crate::model::{Gap, Snippet};
use crate::workspace::native::{self, shown};
use crate::workspace::protect::is_secret;
use crate::workspace::{CHAT_FILE, Document, Documents, Excerpt};

/// The most bytes before the place.
pub(super) const BEFORE: usize = 8 << 10;
/// The most bytes after it.
pub(super) const AFTER: usize = 4 << 10;
/// The most bytes of another file.
const OTHER: usize = 2 << 10;
/// The most other files.
const OTHERS: usize = 4;

/// Whether the document may be sent: it holds no secrets, neither by the name it was opened by nor by the one that links
/// lead to.
pub(super) fn is_allowed(excerpt: &Excerpt, uri: &str) -> bool {
    let named = native::file_of(uri);
    [excerpt.path.as_deref(), named.as_deref()]
        .into_iter()
        .flatten()
        .all(|path| !is_secret(path))
}

/// Whether a word continues after the place: nobody wants it split.
pub(super) fn is_inside_word(excerpt: &Excerpt) -> bool {
    excerpt
        .after
        .starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

pub(super) fn gap(documents: &Documents, place: &Place, excerpt: &Excerpt, max_tokens: u64) -> Gap {
    Gap {
        name: own_name(place),
        before: excerpt.before.clone(),
        after: excerpt.after.clone(),
        others: others(documents, &place.uri, &excerpt.language, &place.folders),
        comment: comment(&excerpt.language),
        stop: clean::is_inside_line(excerpt).then_some("\n"),
        max_tokens,
        is_prompt: false,
    }
}

/// Other open files of the workspace in the same language, always in the same order: servers cache what requests begin
/// with.
pub(super) fn others(
    documents: &Documents,
    uri: &str,
    language: &str,
    folders: &[String],
) -> Vec<Snippet> {
    let others = documents.others(uri);
    let others = others.iter().filter(|other| other.language == language);
    let others = others.filter_map(|other| snippet(other, folders));
    others.take(OTHERS).collect()
}

/// The beginning of another open file of the workspace, unless it may hold secrets.
fn snippet(document: &Document, folders: &[String]) -> Option<Snippet> {
    let name = shared_name(document, folders)?;
    let end = document.text.floor_char_boundary(OTHER);
    let text = document.text.get(..end);
    let text = text.filter(|text| !text.trim().is_empty())?;
    let whole_lines = text
        .rfind('\n')
        .and_then(|end| text.get(..end))
        .filter(|_| end < document.text.len());
    Some(Snippet {
        name,
        text: whole_lines.unwrap_or(text).to_owned(),
    })
}

/// The name of another file of the workspace, unless it may hold secrets or is a conversation.
pub(super) fn shared_name(document: &Document, folders: &[String]) -> Option<String> {
    let path = document.path.as_deref();
    let name = name(&document.uri, folders).filter(|_| path.is_some_and(|path| !is_secret(path)));
    name.filter(|name| !is_secret(Path::new(name)) && !name.ends_with(CHAT_FILE))
}

/// The name of a place's document.
pub(super) fn own_name(place: &Place) -> String {
    name(&place.uri, &place.folders).unwrap_or_else(|| place.uri.clone())
}

/// The name of a file below one of the folders.
fn name(uri: &str, folders: &[String]) -> Option<String> {
    let path = native::file_of(uri)?;
    let folders = folders.iter().filter_map(|folder| native::file_of(folder));
    let below = folders.filter_map(|folder| Some(shown(path.strip_prefix(folder).ok()?)));
    below.min_by_key(String::len)
}

/// What begins a comment in a language.
fn comment(language: &str) -> &'static str {
    match language {
        "python" | "ruby" | "perl" | "r" | "sh" | "bash" | "shellscript" | "zsh" | "fish"
        | "toml" | "yaml" | "make" | "makefile" | "cmake" | "dockerfile" | "elixir" | "julia"
        | "nix" | "powershell" | "terraform" => "#",
        "lua" | "sql" | "haskell" | "elm" | "ada" | "vhdl" => "--",
        "lisp" | "scheme" | "clojure" | "fennel" | "racket" | "elisp" => ";;",
        "tex" | "latex" | "plaintex" | "erlang" | "prolog" | "matlab" => "%",
        "vim" => "\"",
        _ => "//",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Encoding, Position};

    const BASE: &str = if cfg!(windows) {
        "file:///C:/"
    } else {
        "file:///"
    };

    fn texts(documents: &Documents, uri: &str) -> Vec<String> {
        let place = Place {
            uri: uri.to_owned(),
            at: Position {
                line: 0,
                character: 0,
            },
            invoked: false,
            folders: vec![format!("{BASE}w")],
        };
        let excerpt = documents.excerpt(uri, place.at, BEFORE, AFTER).unwrap();
        let gap = gap(documents, &place, &excerpt, 1);
        gap.others
            .into_iter()
            .map(|other| format!("{}: {}", other.name, other.text))
            .collect()
    }

    #[test]
    fn context_files_are_bounded_same_language_and_never_secret() {
        let documents = Documents::new(Encoding::Utf8);
        let long = format!("{}\nlast", "x\n".repeat(OTHER));
        for (name, language, text) in [
            ("w/b.rs", "rust", "b"),
            ("w/a.rs", "rust", "a"),
            ("w/.ssh/a.rs", "rust", "no"),
            ("w/long.rs", "rust", &long),
            ("w/a.py", "python", "no"),
            ("elsewhere/a.rs", "rust", "no"),
            ("w/empty.rs", "rust", " \n"),
            ("w/main.rs", "rust", "no"),
        ] {
            documents.open(&format!("{BASE}{name}"), 1, language, text);
        }
        let texts = texts(&documents, &format!("{BASE}w/main.rs"));
        assert_eq!(texts[..2], ["a.rs: a", "b.rs: b"]);
        assert_eq!(texts.len(), 3);
        assert!(
            texts[2].len() <= OTHER + 20 && texts[2].ends_with('x'),
            "{}",
            texts[2].len()
        );
    }
}
