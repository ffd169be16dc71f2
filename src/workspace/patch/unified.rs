//! Patches as `diff -u` and git write them, in the V4A format: the lines say what changes, their numbers are not needed.

use super::{PatchError, are_numbers};
use crate::text::blocks;

/// The same patch between `*** Begin Patch` and `*** End Patch`; `None` where `text` is no such patch.
///
/// # Errors
/// It says more than a V4A patch can.
pub(super) fn as_v4a(text: &str) -> Result<Option<String>, PatchError> {
    let mut lines = unsigned(text.trim_end_matches('\n')).split('\n');
    let begin = "*** Begin Patch\n";
    let mut patch = String::from(begin);
    let mut place = Place::Outside;
    // The names that git puts first, and what it says of a file before its lines, if it has any.
    let (mut names, mut head) = (None, None);
    while let Some(line) = lines.next() {
        let mut ahead = lines.clone();
        let new = ahead.next().and_then(|next| next.strip_prefix("+++ "));
        // Removed and added lines may look like names: `-- x` is `--- x` in a diff.
        let is_followed = ahead.next().is_some_and(|next| next.starts_with("@@"));
        let paths = line.strip_prefix("--- ").zip(new);
        let paths = paths
            .map(|(old, new)| without_prefixes(path(old), path(new)))
            .filter(|(old, new)| is_followed || old.is_none() || new.is_none());
        if let Some((old, new)) = paths {
            lines.next();
            // A diff of an empty file has no such line.
            if new.is_none() && !is_followed {
                return Err(PatchError(
                    "`+++ /dev/null` without the file's lines below it: write all of them, or delete the file with a command".to_owned(),
                ));
            }
            place = match (&old, &new) {
                (Some(_), Some(_)) => Place::Head,
                _ => Place::Whole,
            };
            let Some(head) = head.take().or_else(|| heading(old, new)) else {
                return Ok(None);
            };
            patch += &head;
        } else if let Some(both) = line.strip_prefix("diff --git ") {
            patch += &head.take().unwrap_or_default();
            // Both names are the same unless the file is renamed.
            let (old, new) = both.split_at(both.floor_char_boundary(both.len() / 2));
            names = without_prefixes(path(old), path(new)).0;
            place = Place::Outside;
        } else if let (Some(name), Place::Outside) = (&names, &place) {
            if let Some(from) = line.strip_prefix("rename from ") {
                let to = lines
                    .next()
                    .and_then(|next| next.strip_prefix("rename to "));
                let [from, to] = [from, to.unwrap_or_default()].map(unquoted);
                head = Some(format!("*** Update File: {from}\n*** Move to: {to}\n"));
            } else if let Some((_, action)) =
                MODES.iter().find(|(start, _)| line.starts_with(start))
            {
                head = Some(format!("*** {action} File: {name}\n"));
            } else if UNKNOWN.iter().any(|start| line.starts_with(start)) {
                return Err(PatchError(format!(
                    "`{line}` is more than a change of text; use a command for it"
                )));
            }
        } else if line.starts_with("@@") {
            if matches!(place, Place::Head | Place::Lines) {
                place = Place::Lines;
                let numbers = line.split("@@").nth(1).filter(|it| are_numbers(it));
                patch.extend(["@@", numbers.unwrap_or_default(), "\n"]);
            }
        } else if matches!(place, Place::Lines | Place::Whole) {
            patch.extend([line, "\n"]);
        }
    }
    patch += &head.unwrap_or_default();
    Ok((patch != begin).then(|| patch + "*** End Patch"))
}

/// What git says of files. A change of the mode alone is refused, since it changes no text.
const MODES: [(&str, &str); 3] = [
    ("new file mode 100", "Add"),
    ("old mode ", "Update"),
    ("deleted file mode ", "Delete"),
];

/// What git says of links, copies and binary files.
const UNKNOWN: [&str; 4] = ["new file mode ", "copy from ", "GIT binary", "Binary files"];

/// Whether git's diff changes permissions too, which stay as they are: only its text is applied.
pub fn changes_permissions(text: &str) -> bool {
    let is_mode =
        |line: &str| line.starts_with("new mode ") || line.starts_with("new file mode 100755");
    text.lines().any(is_mode)
}

/// A diff without the version of git that ends a message.
fn unsigned(text: &str) -> &str {
    match text.rsplit_once("\n-- \n") {
        Some((diff, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => diff,
        _ => text,
    }
}

/// Blocks below the name of their file in the V4A format.
pub(super) fn of_blocks(text: &str) -> Option<String> {
    let mut patch = String::from("*** Begin Patch\n");
    for block in blocks(text)? {
        patch.extend(["*** Update File: ", block.heading?, "\n@@\n"]);
        let old = block.old.iter().map(|line| ("-", line));
        let new = block.new.iter().map(|line| ("+", line));
        old.chain(new)
            .for_each(|(sign, line)| patch.extend([sign, line, "\n"]));
    }
    Some(patch + "*** End Patch")
}

/// Where in a diff a line is.
enum Place {
    Outside,
    /// After the names of a file that changes.
    Head,
    /// In its lines.
    Lines,
    /// In the lines of a new or a deleted file.
    Whole,
}

/// A name without the time that diff puts after it; `None` for no file.
fn path(name: &str) -> Option<String> {
    let name = unquoted(name.split('\t').next().unwrap_or_default().trim());
    (name != "/dev/null").then_some(name)
}

/// The names without `a/` and `b/`, which git puts before them; models forget one. A folder may have such a name, too.
fn without_prefixes(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let plain = |name: &Option<String>, prefix: &str| {
        let name = name.as_deref()?;
        Some(name.strip_prefix(prefix).unwrap_or(name).to_owned())
    };
    let has = |name: &Option<String>, prefix| {
        let name = name.as_ref();
        name.is_none_or(|name| name.starts_with(prefix))
    };
    let bare = (plain(&old, "a/"), plain(&new, "b/"));
    let are_git = has(&old, "a/") && has(&new, "b/");
    if are_git || bare.0.is_some() && bare.0 == bare.1 {
        bare
    } else {
        (old, new)
    }
}

/// A name that git quoted because of its characters.
fn unquoted(name: &str) -> String {
    let Some(inside) = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    else {
        return name.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        let escaped = (byte == b'\\').then(|| rest.next()).flatten();
        bytes.push(match escaped {
            None => byte,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(high @ b'0'..=b'3') => {
                let digits = [
                    high,
                    rest.next().unwrap_or(b'0'),
                    rest.next().unwrap_or(b'0'),
                ];
                digits.iter().fold(0, |byte, digit| byte << 3 | (digit & 7))
            }
            Some(other) => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `None` if only the names differ: git states a rename itself.
fn heading(old: Option<String>, new: Option<String>) -> Option<String> {
    match (old, new) {
        // A copy of the old text has an ending of its own (`app.py.orig`).
        (Some(old), Some(new)) => old
            .strip_prefix(&new)
            .filter(|ending| ending.is_empty() || ending.starts_with('.'))
            .map(|_| format!("*** Update File: {new}\n")),
        (None, Some(new)) => Some(format!("*** Add File: {new}\n")),
        (Some(old), None) => Some(format!("*** Delete File: {old}\n")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_are_parsed_as_patches() {
        let diff = "diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@ def f():\n one\n-two\n+2\n\\ No newline at end of file\n";
        let expected = "*** Begin Patch\n*** Update File: x.py\n@@ -1,2 +1,2 \n one\n-two\n+2\n\\ No newline at end of file\n*** End Patch";
        assert_eq!(as_v4a(diff).unwrap().as_deref(), Some(expected));
        assert_eq!(
            as_v4a("--- x.py\t2026-01-01\n+++ x.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n")
                .unwrap()
                .unwrap()
                .matches("x.py")
                .count(),
            1
        );
    }

    #[test]
    fn files_come_go_and_move_as_git_says() {
        let diff = "diff --git a/new b/new\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n\
            diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
            diff --git a/from b/to\nsimilarity index 90%\nrename from from\nrename to to\n--- a/from\n+++ b/to\n@@ -1 +1 @@\n-x\n+y\n\
            diff --git a/here b/there\nsimilarity index 100%\nrename from here\nrename to there\n";
        let expected = "*** Begin Patch\n*** Add File: new\n+a\n+b\n*** Delete File: old\n-x\n*** Update File: from\n\
            *** Move to: to\n@@ -1 +1 \n-x\n+y\n*** Update File: here\n*** Move to: there\n*** End Patch";
        assert_eq!(as_v4a(diff).unwrap().as_deref(), Some(expected));
    }

    #[test]
    fn diffs_with_inconsistent_counts_are_rejected() {
        for text in [
            "",
            "just words",
            "-a\n+b",
            "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        ] {
            assert_eq!(as_v4a(text).unwrap(), None, "{text}");
        }
        for more in [
            "copy from x\ncopy to y",
            "new file mode 120000",
            "Binary files a/x and b/y differ",
        ] {
            let text = format!("diff --git a/x b/y\n{more}\n");
            assert!(as_v4a(&text).is_err(), "{text}");
        }
    }
}
