//! The part of a permission request besides title and diff: what will really happen, and what is easily missed.
//!
//! Every line is escaped: what is shown is what there is.

use std::collections::BTreeSet;
use std::path::Path;

use super::{CommandLine, FileDiff, Preview};
use crate::text::display::{escape, escape_line, hidden};
use crate::text::{around, script};
use crate::workspace::native;

impl Preview {
    /// The lines; empty if title and diff say everything.
    pub fn description(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.command.as_deref().into_iter().flat_map(command));
        let texts = [&self.caution, &self.note, &self.link];
        lines.extend(
            texts
                .into_iter()
                .flatten()
                .map(|text| escape_line(text).into_owned()),
        );
        lines.extend(self.diffs.iter().filter_map(unseen));
        lines.extend(self.lookalike());
        lines
    }

    /// A word in a path or command that mixes writing systems.
    fn lookalike(&self) -> Option<String> {
        let paths = self
            .locations
            .iter()
            .map(|location| &location.path)
            .chain(&self.targets);
        let found = paths
            .map(|path| path.to_string_lossy())
            .chain(self.command.iter().map(|line| line.command.as_str().into()))
            .find_map(|text| script::mixed(&text))?;
        Some(format!("warning: {}", escape_line(&found)))
    }
}

/// The command as the shell gets it, and where and how it runs.
fn command(line: &CommandLine) -> [String; 2] {
    let how = match (line.sandboxed, line.network, line.localhost) {
        // Nothing keeps it from the network.
        (false, _, _) => "NOT in a sandbox",
        (true, true, _) => "in the sandbox, with network",
        (true, false, true) => "in the sandbox, without network",
        (true, false, false) => "in the sandbox, without network or a shared localhost",
    };
    [
        escape(&line.command).into_owned(),
        format!("in {}, {how}", shown(&line.cwd)),
    ]
}

/// Characters a change adds that its diff does not show.
fn unseen(diff: &FileDiff) -> Option<String> {
    let (old, new) = diff.as_read();
    let (old, new, _) = around(old.as_deref().unwrap_or_default(), &new, 0);
    // The CR of a Windows line ending is harmless.
    let is_unseen = |c: &char| super::is_deceptive(*c) && *c != '\r';
    let unseen = |text: &str| text.chars().filter(is_unseen).collect::<BTreeSet<char>>();
    let brought: String = unseen(new).difference(&unseen(old)).collect();
    let hidden = hidden(&brought)?;
    Some(format!(
        "adds invisible characters to {}: {hidden}",
        shown(&diff.path)
    ))
}

fn shown(path: &Path) -> String {
    escape_line(&native::shown(path)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Location;
    use super::*;
    use crate::process::Dialect;

    #[track_caller]
    fn check(preview: &Preview, expected: &[&str]) {
        assert_eq!(preview.description(), expected);
    }

    #[test]
    fn commands_are_shown_in_full_with_their_sandbox() {
        let line = |command: &str, sandboxed, network| Preview {
            command: Some(Box::new(CommandLine {
                command: command.into(),
                dialect: Dialect::Posix,
                cwd: "/w/sub".into(),
                sandboxed,
                network,
                localhost: true,
                undo: crate::tools::Undo::Everything,
            })),
            ..Preview::default()
        };
        check(
            &line("make\nmake test", true, false),
            &[
                "make\nmake test",
                "in /w/sub, in the sandbox, without network",
            ],
        );
        check(
            &line("curl x", true, true),
            &["curl x", "in /w/sub, in the sandbox, with network"],
        );
        check(
            &line("make", false, true),
            &["make", "in /w/sub, NOT in a sandbox"],
        );
        check(
            &line("echo \u{202e}x; c\u{430}t y", true, false),
            &[
                "echo \\u{202e}x; c\u{430}t y",
                "in /w/sub, in the sandbox, without network",
                "warning: `c\u{430}t` mixes Latin and Cyrillic letters",
            ],
        );
    }

    #[test]
    fn many_invisible_characters_are_scanned_once() {
        // Searching the old text for each character would take minutes.
        let (old, new) = ("x".repeat(300_000), "\u{200b}".repeat(100_000));
        let diff = FileDiff::new("/w/a".into(), Some(old.into()), new.into());
        let preview = Preview {
            diffs: vec![diff],
            ..Preview::default()
        };
        check(&preview, &["adds invisible characters to /w/a: U+200B"]);
    }

    #[test]
    fn hidden_characters_in_a_diff_are_reported() {
        let (old, new) = ("\u{feff}a\r\n", "\u{feff}\u{200b}\r\n");
        let diff = FileDiff::new("/w/a".into(), Some(old.into()), new.into());
        let preview = Preview {
            diffs: vec![diff],
            caution: Some("careful".into()),
            ..Preview::default()
        };
        check(
            &preview,
            &["careful", "adds invisible characters to /w/a: U+200B"],
        );
        check(&Preview::default(), &[]);
        let location = Location {
            path: "/w/r\u{435}adme".into(),
            line: None,
        };
        let preview = Preview {
            locations: vec![location],
            ..Preview::default()
        };
        check(
            &preview,
            &["warning: `r\u{435}adme` mixes Latin and Cyrillic letters"],
        );
    }
}
