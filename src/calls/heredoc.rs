//! A patch that a model applies in the shell, as it was trained to: `apply_patch <<'EOF' …`. Pure.

use serde_json::Value;

use crate::text::shell::{self, Command, Dialect, End, Word};

/// The lines of a patch that name a file.
const FILES: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// The patch that a command applies, if it does nothing else, with its paths relative to the command's folder.
pub(crate) fn patch(arguments: &Value) -> Option<String> {
    let line = shell::read(arguments["command"].as_str()?, Dialect::Posix).ok()?;
    let (folder, commands) = match line.commands.as_slice() {
        [enter, commands @ ..] if enter.end == End::And => (entered(enter)?, commands),
        commands => (String::new(), commands),
    };
    let patch = given(commands)?;
    if !patch.trim_start().starts_with("*** Begin Patch") {
        return None;
    }
    let cwd = arguments["cwd"].as_str().unwrap_or_default();
    Some(below(cwd, &below(&folder, &patch)))
}

/// The folder of `cd FOLDER`.
fn entered(command: &Command) -> Option<String> {
    match command.texts()?.as_slice() {
        [cd, folder] if cd == "cd" && command.does_nothing_else() => Some(folder.clone()),
        _ => None,
    }
}

/// The input of `apply_patch`: its only argument, its here-document, or that of the `cat` before it.
fn given(commands: &[Command]) -> Option<String> {
    let (apply, cat) = match commands {
        [cat, apply] if cat.end == End::Pipe && cat.texts()? == ["cat"] => (apply, Some(cat)),
        [apply] => (apply, None),
        _ => return None,
    };
    let words = apply.texts()?;
    if !["apply_patch", "applypatch"].contains(&words.first()?.as_str())
        || apply.end != End::Sequence
    {
        return None;
    }
    match (words.get(1..)?, cat) {
        ([patch], None) if apply.does_nothing_else() => Some(patch.clone()),
        ([], Some(_)) if !apply.does_nothing_else() => None,
        ([], from) => document(from.unwrap_or(apply)),
        _ => None,
    }
}

/// The here-document of a command with no other redirection. Text that a shell would expand is taken as written.
fn document(command: &Command) -> Option<String> {
    match command.redirections.as_slice() {
        [only] if command.assignments.is_empty() => only.document().map(Word::written),
        _ => None,
    }
}

/// The patch with its paths relative to the parent of `folder`.
fn below(folder: &str, patch: &str) -> String {
    let folder = folder.trim_start_matches("./").trim_end_matches('/');
    if folder.is_empty() || folder == "." {
        return patch.to_owned();
    }
    let line = |line: &str| match FILES
        .iter()
        .find_map(|head| Some((head, line.strip_prefix(head)?)))
    {
        Some((head, path)) if !path.starts_with('/') => format!("{head}{folder}/{path}"),
        _ => line.to_owned(),
    };
    patch.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PATCH: &str = "*** Begin Patch\n*** Update File: a\n-it's\n+x\n*** End Patch";

    #[track_caller]
    fn check(command: &str, expected: Option<&str>) {
        assert_eq!(
            patch(&json!({ "command": command }))
                .as_deref()
                .map(str::trim_end),
            expected,
            "{command}"
        );
    }

    #[test]
    fn a_heredoc_patch_is_a_patch() {
        check(&format!("apply_patch <<'EOF'\n{PATCH}\nEOF"), Some(PATCH));
        check(
            &format!("cat <<'EOF' | apply_patch\n{PATCH}\nEOF"),
            Some(PATCH),
        );
        check(
            &format!("apply_patch << EOF\n{PATCH}\nEOF\n\n"),
            Some(PATCH),
        );
        check(
            &format!("applypatch <<-\"PATCH\"\n{PATCH}\nPATCH"),
            Some(PATCH),
        );
        check(
            &format!("apply_patch '{}'", PATCH.replace('\'', r"'\''")),
            Some(PATCH),
        );
        check(&format!("apply_patch \"{PATCH}\""), Some(PATCH));
        let below = PATCH.replace("File: a", "File: src/a");
        check(
            &format!("cd src && apply_patch <<'EOF'\n{PATCH}\nEOF"),
            Some(&below),
        );
        let spaced = PATCH.replace("File: a", "File: my src/a");
        check(
            &format!("cd 'my src' && apply_patch <<'EOF'\n{PATCH}\nEOF"),
            Some(&spaced),
        );
        let arguments =
            json!({ "command": format!("apply_patch <<'EOF'\n{PATCH}\nEOF"), "cwd": "./src/" });
        assert_eq!(
            patch(&arguments).as_deref().map(str::trim_end),
            Some(below.as_str())
        );
    }

    #[test]
    fn a_heredoc_with_more_commands_is_a_command() {
        for command in [
            "ls".to_owned(),
            format!("apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -rf x"),
            format!("apply_patch <<'EOF'\n{PATCH}\n"),
            format!("apply_patch '{PATCH}' && ls"),
            format!("apply_patch \"$(cat x)\n{PATCH}\""),
            "apply_patch <<'EOF'\nno patch\nEOF".to_owned(),
            format!("cd $HOME && apply_patch <<'EOF'\n{PATCH}\nEOF"),
        ] {
            check(&command, None);
        }
    }
}
