//! A patch that a model applies in the shell, as it was trained to: `apply_patch <<'EOF' …`. Pure.

use serde_json::Value;

/// The lines of a patch that name a file.
const FILES: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// The patch that a command applies, if it does nothing else, with its paths relative to the command's folder.
pub(crate) fn patch(arguments: &Value) -> Option<String> {
    let command = arguments.get("command")?.as_str()?.trim();
    let (folder, command) = entered(command).unwrap_or(("", command));
    let patch = given(command)?;
    if !patch.trim_start().starts_with("*** Begin Patch") {
        return None;
    }
    let cwd = arguments
        .get("cwd")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(below(cwd, &below(folder, &patch)))
}

/// `cd FOLDER && …`.
fn entered(command: &str) -> Option<(&str, &str)> {
    let (folder, rest) = command.strip_prefix("cd ")?.split_once("&&")?;
    let folder = folder.trim();
    let is_plain = !folder.contains(|c: char| c.is_whitespace() || "'\"$`\\*?~;|&".contains(c));
    is_plain.then_some((folder, rest.trim()))
}

/// The input of `apply_patch`: its standard input or its only argument.
fn given(command: &str) -> Option<String> {
    if let Some((heredoc, text)) = command
        .strip_prefix("cat ")
        .and_then(|rest| rest.split_once('\n'))
        && let Some((heredoc, program)) = heredoc.split_once('|')
        && ["apply_patch", "applypatch"].contains(&program.trim())
    {
        return given(&format!("apply_patch {}\n{text}", heredoc.trim()));
    }
    let rest = ["apply_patch", "applypatch"]
        .iter()
        .find_map(|name| command.strip_prefix(name))?;
    let rest = rest.trim_start_matches([' ', '\t']);
    match rest.strip_prefix("<<") {
        Some(heredoc) => body(heredoc.trim_start_matches('-').trim_start()),
        None => argument(rest),
    }
}

/// The lines up to the terminator, after which nothing may follow.
fn body(heredoc: &str) -> Option<String> {
    let (word, text) = heredoc.split_once('\n')?;
    let word = word.trim().trim_matches(['\'', '"']);
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut lines = text.lines();
    let mut body = String::new();
    for line in lines.by_ref() {
        if line.trim() == word {
            return (is_word && lines.all(|line| line.trim().is_empty())).then_some(body);
        }
        body.push_str(line);
        body.push('\n');
    }
    None
}

/// One quoted word.
fn argument(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(inside) = text.strip_prefix('\'') {
        let inside = inside.strip_suffix('\'')?;
        let whole = inside.replace(r"'\''", "\0");
        return (!whole.contains('\'')).then(|| whole.replace('\0', "'"));
    }
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut plain = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        match character {
            // The shell would expand this.
            '"' | '$' | '`' => return None,
            '\\' => match characters.next()? {
                escaped @ ('"' | '$' | '`' | '\\') => plain.push(escaped),
                other => plain.extend(['\\', other]),
            },
            other => plain.push(other),
        }
    }
    Some(plain)
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
