//! Command lines that may remove or overwrite much: since undo may not cover that, they require approval in every mode.
//!
//! A line that is understood is judged by its commands; in any other, programs that remove files are searched for by
//! name.
//!
//! This is no security boundary (the sandbox is), so a program's own code is not analyzed.

use super::command::Words;
use super::programs::name;

/// Programs that remove content.
const REMOVERS: [&str; 7] = ["dd", "mv", "rimraf", "rm", "shred", "truncate", "unlink"];
/// Their counterparts in scripting languages.
const CALLS: [&str; 5] = ["FileUtils.rm", "rmtree", "rmSync", "rm_rf", "rmdirSync"];
/// Separators of commands in a line that is not understood.
const SEPARATORS: [char; 8] = [';', '|', '&', '\n', '(', ')', '{', '}'];

/// Whether the line may remove or overwrite more than it names. `commands` is its parsed form, if any.
pub(super) fn may_empty(line: &str, commands: Option<&[Words]>) -> bool {
    if CALLS.iter().any(|call| line.contains(call)) {
        return true;
    }
    match commands {
        Some(commands) => commands.iter().any(|words| empties(words)),
        None => line.split(SEPARATORS).any(|part| {
            let word = |word: &str| word.trim_matches(['"', '\'', '`']).to_owned();
            let words: Vec<String> = part.split_whitespace().map(word).filter(|word| !word.is_empty()).collect();
            (0..words.len()).any(|start| words.get(start..).is_some_and(|words| empties(words) || is_open(words)))
        }),
    }
}

/// Whether a simple command affects more than it names.
fn empties(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let has = |wanted: &str| arguments.iter().any(|word| word == wanted);
    let runs_remover = || arguments.iter().any(|word| is_shell(word) || REMOVERS.contains(&name(word).as_str()));
    match name(program).as_str() {
        "find" => has("-delete") || (arguments.iter().any(|word| word.starts_with("-exec")) && runs_remover()),
        "git" => has("clean") && arguments.iter().any(|word| is_flag(word, &['x', 'X'])),
        "rm" => arguments.iter().any(|word| matches!(word.trim_end_matches('/'), "." | "..")),
        "fd" | "parallel" | "xargs" => runs_remover(),
        // Text passed to another shell is a line of its own.
        program if is_shell(program) || program == "eval" => {
            arguments.iter().any(|text| may_empty(text, super::command::parse(text).ok().as_deref()))
        }
        _ => false,
    }
}

/// Whether the names given to a removing command depend on the shell.
fn is_open(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let any = |starts: &[char]| arguments.iter().any(|word| word.contains(starts));
    match name(program).as_str() {
        "rm" | "rimraf" => {
            let is_recursive = arguments.iter().any(|word| word == "--recursive" || is_flag(word, &['r', 'R']));
            (is_recursive && any(&['*', '?', '[', '$'])) || arguments.iter().any(|word| word.contains("**"))
        }
        "mv" => any(&['*']) || arguments.iter().any(|word| word == "$"),
        "dd" | "shred" | "truncate" | "unlink" => any(&['*', '$']),
        _ => false,
    }
}

fn is_shell(program: &str) -> bool {
    matches!(name(program).as_str(), "sh" | "bash" | "dash" | "ksh" | "zsh" | "fish")
}

/// Whether a word is a group of one-letter options that contains one of these.
fn is_flag(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

#[cfg(test)]
mod tests {
    use super::super::command::parse;
    use super::*;

    #[test]
    fn what_may_empty_a_workspace_is_noticed() {
        let check = |line: &str, expected: bool| {
            assert_eq!(may_empty(line, parse(line).ok().as_deref()), expected, "{line}");
        };
        for line in [
            "rm -rf *",
            "rm -rf \"$PWD\"",
            "rm -rf .",
            "cd sub && rm -rf ..",
            "find . -delete",
            "find . -type f -exec rm {} +",
            "find . -name x -exec rm '{}' ';'",
            "find . -print0 | xargs -0 rm",
            "git clean -fdx",
            "git clean -xfd && make",
            "bash -c 'rm -rf *'",
            "sh -c \"find . -delete\"",
            "eval 'rm -rf *'",
            "mv * /tmp",
            "mv $(ls) /tmp",
            "truncate -s 0 *",
            "for f in *; do shred -u $f; done",
            "for f in $(ls); do dd if=/dev/zero of=$f count=1; done",
            "python3 -c 'import shutil; shutil.rmtree(\".\")'",
            "node -e \"require('fs').rmSync('.', {recursive: true})\"",
        ] {
            check(line, true);
        }
        for line in [
            "rm -rf target",
            "rm a b",
            "mv a b",
            "git clean -fd",
            "git checkout -- .",
            "git reset --hard",
            "git mv a b",
            "find . -name '*.rs'",
            "cargo test 2>&1 | tail -5",
            "echo $HOME",
            "npm run build > log",
            "for f in *; do wc -l $f; done",
            "bash -c 'make test'",
            "truncate -s 0 log",
            "sed s/a/b/ x > t && mv t x",
            "rm -f *.o",
        ] {
            check(line, false);
        }
    }
}
