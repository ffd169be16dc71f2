//! Command lines of PowerShell and `cmd`, as far as both read them the same way: plain words and plain quotes.
//!
//! They are read for rules that restrict. Nothing holds a command on Windows, so no rule allows one there.

use super::Words;

/// What separates simple commands.
const SEPARATORS: [char; 4] = [';', '|', '&', '\n'];
/// What stands for itself in a word, besides ASCII letters and digits: PowerShell takes other dashes and quotes for its own.
const PLAIN: &str = "_-./\\:=+~*?";
/// What does not stand for itself between double quotes, in one of the two.
const QUOTED_SPECIAL: &str = "\"$`%!^\n";

/// What is one command under several names; the first is the canonical one.
const ALIASES: [&[&str]; 10] = [
    &["remove-item", "del", "erase", "rd", "ri", "rm", "rmdir"],
    &["copy-item", "copy", "cp", "cpi"],
    &["move-item", "mi", "move", "mv"],
    &["rename-item", "ren", "rni"],
    &["get-content", "cat", "gc", "type"],
    &["get-childitem", "dir", "gci", "ls"],
    &["new-item", "md", "mkdir", "ni"],
    &["invoke-webrequest", "curl", "iwr", "wget"],
    &["write-output", "echo", "write"],
    &["stop-process", "kill", "spps", "taskkill"],
];

/// What runs other commands, or changes what later ones mean.
const WRAPPERS: [&str; 44] = [
    "%",
    ".",
    "?",
    "call",
    "cd",
    "chdir",
    "cmd",
    "cscript",
    "for",
    "foreach",
    "foreach-object",
    "forfiles",
    "function",
    "icm",
    "iex",
    "if",
    "invoke-command",
    "invoke-expression",
    "mshta",
    "new-alias",
    "popd",
    "powershell",
    "psexec",
    "pushd",
    "pwsh",
    "runas",
    "rundll32",
    "sal",
    "saps",
    "schtasks",
    "set",
    "set-alias",
    "set-location",
    "sl",
    "start",
    "start-job",
    "start-process",
    "switch",
    "try",
    "where-object",
    "while",
    "wmic",
    "wscript",
    "wsl",
];

/// The simple commands of a line; `None` when any part of it is not understood.
pub(in crate::session::permission) fn parse(line: &str) -> Option<Vec<Words>> {
    let (mut commands, mut words, mut chars) = (Vec::new(), Words::new(), line.chars().peekable());
    while let Some(&character) = chars.peek() {
        if character == ' ' || character == '\t' {
            chars.next();
        } else if SEPARATORS.contains(&character) {
            chars.next();
            chars.next_if_eq(&character);
            if !words.is_empty() {
                commands.push(std::mem::take(&mut words));
            }
        } else if chars.next_if_eq(&'"').is_some() {
            // PowerShell takes a line that begins with a text for an expression.
            let text = quoted(&mut chars).filter(|_| !words.is_empty())?;
            words.push(text);
        } else {
            let mut word = String::new();
            while let Some(next) = chars.next_if(|c| !c.is_whitespace() && !SEPARATORS.contains(c))
            {
                if !next.is_ascii_alphanumeric() && !PLAIN.contains(next) {
                    return None;
                }
                word.push(next);
            }
            words.push(word);
        }
    }
    commands.extend(Some(words).filter(|words| !words.is_empty()));
    (!commands.is_empty()).then_some(commands)
}

/// A text up to its closing quote, behind which the word ends.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    loop {
        match chars.next()? {
            '"' => break,
            character
                if QUOTED_SPECIAL.contains(character) || !(' '..='~').contains(&character) =>
            {
                return None;
            }
            character => text.push(character),
        }
    }
    let ends = chars
        .peek()
        .is_none_or(|next| next.is_whitespace() || SEPARATORS.contains(next));
    // A backslash would take the closing quote into the text.
    (ends && !text.ends_with('\\')).then_some(text)
}

/// The name that a program goes by: `C:\x\RM.EXE` and `del` are `remove-item`.
pub(in crate::session::permission) fn canonical(program: &str) -> String {
    let base = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(program)
        .to_ascii_lowercase();
    let endings = [".exe", ".com", ".cmd", ".bat", ".ps1"];
    let name = endings
        .iter()
        .find_map(|ending| base.strip_suffix(ending))
        .unwrap_or(&base);
    let alias = ALIASES.iter().find(|names| names.contains(&name));
    alias
        .and_then(|names| names.first())
        .map_or_else(|| name.to_owned(), |name| (*name).to_owned())
}

/// Whether a program may run something its name does not tell.
pub(in crate::session::permission) fn runs_others(program: &str) -> bool {
    WRAPPERS.contains(&canonical(program).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_windows_lines_are_parsed() {
        let check = |line: &str, expected: &[&[&str]]| {
            let commands = parse(line).unwrap_or_default();
            assert_eq!(
                commands,
                expected
                    .iter()
                    .map(|words| words.to_vec())
                    .collect::<Vec<_>>(),
                "{line}"
            );
        };
        check("cargo test --lib", &[&["cargo", "test", "--lib"]]);
        check(
            r#"del "a b.txt" & dir C:\x"#,
            &[&["del", "a b.txt"], &["dir", r"C:\x"]],
        );
        check(
            "npm ci && npm test | findstr ok",
            &[&["npm", "ci"], &["npm", "test"], &["findstr", "ok"]],
        );
        check(
            "Get-Item x; Remove-Item y\n",
            &[&["Get-Item", "x"], &["Remove-Item", "y"]],
        );
    }

    #[test]
    fn lines_that_cmd_and_powershell_read_differently_are_not_understood() {
        for line in [
            "",
            " ; ",
            "del %X%",
            "del $x",
            "del (x)",
            "echo ^& del x",
            "del `x",
            "'del' x",
            "\"del\" x",
            "del \"a\\\"",
            "del a\"b",
            "del \"$x\"",
            "x > y",
            "x < y",
            "del @x",
            "del x,y",
            "# del",
            "del {x}",
            "\u{2013}x",
            "del \u{201c}x\u{201d}",
            "del !x!",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_program_is_recognized_by_all_aliases() {
        for program in ["rm", "DEL", "Remove-Item", r"C:\tools\rm.EXE", "./rmdir"] {
            assert_eq!(canonical(program), "remove-item", "{program}");
        }
        assert_eq!(canonical("npm.cmd"), "npm");
        assert!(
            runs_others("IEX")
                && runs_others("cmd.exe")
                && runs_others(r"C:\w\powershell.exe")
                && !runs_others("cargo")
        );
    }
}
