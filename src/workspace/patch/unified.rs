//! Patches as `diff -u` and git write them, in the V4A format: the lines say what changes, their numbers are not needed.

/// The same patch between `*** Begin Patch` and `*** End Patch`; `None` where `text` is no such patch, or says more than
/// that.
pub(super) fn as_v4a(text: &str) -> Option<String> {
    let mut lines = text.trim_end().lines().peekable();
    let mut patch = String::from("*** Begin Patch\n");
    let mut place = Place::Outside;
    let (mut is_renamed, mut is_any) = (false, false);
    while let Some(line) = lines.next() {
        let after = line
            .strip_prefix("--- ")
            .zip(lines.peek().and_then(|next| next.strip_prefix("+++ ")));
        if let Some((old, new)) = after {
            lines.next();
            if !std::mem::take(&mut is_renamed) {
                patch.push_str(&heading(path(old), path(new))?);
            }
            place = match (path(old), path(new)) {
                (None, _) => Place::New,
                (_, None) => Place::Deleted,
                _ => Place::Head,
            };
            is_any = true;
        } else if let Some(old) = line.strip_prefix("rename from ") {
            let new = lines.next()?.strip_prefix("rename to ")?;
            patch.extend(["*** Update File: ", old, "\n*** Move to: ", new, "\n"]);
            (is_renamed, is_any) = (true, true);
        } else if ["copy ", "GIT binary", "Binary files"]
            .iter()
            .any(|start| line.starts_with(start))
        {
            return None;
        } else if line.starts_with("diff --git ") {
            (place, is_renamed) = (Place::Outside, false);
        } else if line.starts_with("@@") && matches!(place, Place::Head | Place::Lines) {
            place = Place::Lines;
            patch.push_str("@@\n");
        } else if !line.starts_with('\\')
            && !line.starts_with("@@")
            && matches!(place, Place::Lines | Place::New)
        {
            patch.push_str(line);
            patch.push('\n');
        }
    }
    is_any.then(|| patch + "*** End Patch")
}

/// Blocks of a text to search for and its replacement below the name of their file, as Aider writes them, in the V4A
/// format.
pub(super) fn of_blocks(text: &str) -> Option<String> {
    let mut patch = String::from("*** Begin Patch\n");
    let (mut file, mut sign) = (None, None);
    for line in text.lines() {
        let mark = line.trim_matches(['<', '=', '>', ' ']);
        let is_rule = line.len() >= 7 && mark.len() + 5 <= line.len();
        sign = match (sign, mark) {
            (None, "SEARCH") if is_rule => {
                let name: &str = file.take()?;
                patch.extend(["*** Update File: ", name, "\n@@\n"]);
                file = Some(name);
                Some("-")
            }
            (Some("-"), "") if is_rule => Some("+"),
            (Some("+"), "REPLACE") if is_rule => None,
            (Some(sign), _) => {
                patch.extend([sign, line, "\n"]);
                Some(sign)
            }
            (None, _) => {
                let is_name = !line.trim().is_empty() && !line.starts_with("```");
                file = is_name.then(|| line.trim()).or(file);
                None
            }
        };
    }
    let is_whole = sign.is_none() && patch.contains("\n@@\n");
    is_whole.then(|| patch + "*** End Patch")
}

/// Where in a diff a line is.
enum Place {
    Outside,
    /// Behind the names of a file that changes.
    Head,
    /// In its lines.
    Lines,
    /// In the lines of a new file.
    New,
    /// In those of a file that goes.
    Deleted,
}

/// A name without the folder git puts in front and the time diff puts behind; `None` for no file.
fn path(name: &str) -> Option<&str> {
    let name = name.split('\t').next().unwrap_or_default().trim();
    let plain = name
        .strip_prefix("a/")
        .or_else(|| name.strip_prefix("b/"))
        .unwrap_or(name);
    (name != "/dev/null").then_some(plain)
}

/// `None` where only the names say that a file gets another one: git says so itself.
fn heading(old: Option<&str>, new: Option<&str>) -> Option<String> {
    match (old, new) {
        // A copy of the old text has an ending of its own (`app.py.orig`).
        (Some(old), Some(new))
            if old.split_once(new).is_some_and(|(before, ending)| {
                before.is_empty() && (ending.is_empty() || ending.starts_with('.'))
            }) =>
        {
            Some(format!("*** Update File: {new}\n"))
        }
        (None, Some(new)) => Some(format!("*** Add File: {new}\n")),
        (Some(old), None) => Some(format!("*** Delete File: {old}\n")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_are_parsed_as_patches() {
        let diff = "diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@ def f():\n one\n-two\n+2\n\\ No newline at end of file\n";
        let expected = "*** Begin Patch\n*** Update File: x.py\n@@\n one\n-two\n+2\n*** End Patch";
        assert_eq!(as_v4a(diff).as_deref(), Some(expected));
        assert_eq!(
            as_v4a("--- x.py\t2026-01-01\n+++ x.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n")
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
        let expected = "*** Begin Patch\n*** Add File: new\n+a\n+b\n*** Delete File: old\n*** Update File: from\n\
            *** Move to: to\n@@\n-x\n+y\n*** Update File: here\n*** Move to: there\n*** End Patch";
        assert_eq!(as_v4a(diff).as_deref(), Some(expected));
    }

    #[test]
    fn diffs_with_inconsistent_counts_are_rejected() {
        for text in [
            "",
            "just words",
            "-a\n+b",
            "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
            "diff --git a/x b/y\ncopy from x\ncopy to y\n",
        ] {
            assert_eq!(as_v4a(text), None, "{text}");
        }
    }
}
