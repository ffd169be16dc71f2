//! Patches as `diff -u` and git write them, in the V4A format: the lines say what changes, their numbers are not needed.

/// The same patch between `*** Begin Patch` and `*** End Patch`; `None` where `text` is no such patch, or says more than
/// which lines come and go.
pub(super) fn as_v4a(text: &str) -> Option<String> {
    let mut lines = text.trim_end().lines().peekable();
    let mut patch = String::from("*** Begin Patch\n");
    let (mut is_inside, mut is_any) = (false, false);
    while let Some(line) = lines.next() {
        let after = line
            .strip_prefix("--- ")
            .zip(lines.peek().and_then(|next| next.strip_prefix("+++ ")));
        if let Some((old, new)) = after {
            lines.next();
            patch.push_str(&heading(path(old), path(new))?);
            (is_inside, is_any) = (false, true);
        } else if line.starts_with("@@") {
            is_inside = is_any;
            patch.push_str("@@\n");
        } else if ["rename ", "copy ", "GIT binary", "Binary files"]
            .iter()
            .any(|start| line.starts_with(start))
        {
            return None;
        } else if is_inside && !line.starts_with('\\') && !line.starts_with("diff --git ") {
            patch.push_str(line);
            patch.push('\n');
        } else if line.starts_with("diff --git ") {
            is_inside = false;
        }
    }
    is_any.then(|| patch + "*** End Patch")
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

/// `None` where a file gets another name: then what the person is shown would not be all.
fn heading(old: Option<&str>, new: Option<&str>) -> Option<String> {
    match (old, new) {
        (Some(old), Some(new)) if old == new => Some(format!("*** Update File: {new}\n")),
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
    fn diffs_with_inconsistent_counts_are_rejected() {
        for text in [
            "",
            "just words",
            "-a\n+b",
            "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
            "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
            "diff --git a/x b/y\nrename from x\nrename to y\n",
        ] {
            assert_eq!(as_v4a(text), None, "{text}");
        }
    }
}
