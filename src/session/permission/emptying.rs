//! Command lines that may remove or overwrite much: since undo may not cover that, they require approval in every mode.
//!
//! A line that is understood is judged by its commands; in any other, programs that remove files are searched for by
//! name.
//!
//! This is no security boundary (the sandbox is), so a program's own code is not analyzed: only the names of what
//! removes files in scripting languages are.

use super::command::{Words, parse};
use super::programs::{name, runs_others};

/// Programs that remove content.
const REMOVERS: [&str; 12] = [
    "dd",
    "mv",
    "rename",
    "rimraf",
    "rm",
    "shred",
    "srm",
    "trash",
    "trash-put",
    "truncate",
    "unlink",
    "wipe",
];
/// Scripting languages.
const LANGUAGES: [&str; 16] = [
    "awk", "bun", "deno", "gawk", "julia", "lua", "luajit", "mawk", "node", "nodejs", "perl",
    "php", "pypy", "python", "ruby", "tclsh",
];
/// What removes content in them.
const CALLS: [&str; 19] = [
    "Deno.remove",
    "Dir.delete",
    "File.delete",
    "FileUtils.remove",
    "FileUtils.rm",
    "emptyDir",
    "fs.remove",
    "fs.rm",
    "os.remove",
    "promises.rm",
    "remove_tree",
    "rm_f",
    "rm_rf",
    "rmSync",
    "rmdirSync",
    "rmtree",
    "shutil.move",
    "truncate",
    "unlink",
];
/// Programs that write one file over another.
const COPIERS: [&str; 4] = ["cp", "install", "ln", "tee"];
/// What they empty a file with.
const NOTHING: &str = "/dev/null";
/// Separators of commands in a line that is not understood.
const SEPARATORS: [char; 9] = [';', '|', '&', '\n', '(', ')', '{', '}', '`'];

/// How many words a command is judged by.
const WORDS: usize = 1000;

/// What undo does not cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uncovered {
    /// Files that git ignores, and git's objects.
    Ignored,
    /// git's objects only: a pattern such as `*` does not match their folder.
    Objects,
}

/// Whether the line may remove or overwrite more than it names, among what is not covered. `commands` is its parsed
/// form, if any.
pub(super) fn may_empty(line: &str, commands: Option<&[Words]>, uncovered: Uncovered) -> bool {
    // What a shell in the line reads may be in another command of it.
    let is_fed = |words: &Words| words.first().is_some_and(|program| is_shell(program));
    if calls_remover(line) {
        return true;
    }
    if let Some(commands) = commands.filter(|commands| !commands.iter().any(is_fed)) {
        return commands.iter().any(|words| uncovered.is_emptied_by(words));
    }
    let is_emptied = |words: &[String]| uncovered.is_emptied_by(words) || uncovered.is_open(words);
    (is_loop(line) && (overwrites_in_a_loop(line) || has_candidate(line, removes_variable)))
        || has_candidate(line, runs_unknown)
        || has_candidate(line, is_emptied)
}

/// Whether this is said of what may be a command in a line that is not understood: the words from any of them on.
pub(super) fn has_candidate(line: &str, is: impl Fn(&[String]) -> bool) -> bool {
    let word = |word: &str| {
        word.trim_matches([',', '[', ']'])
            .replace(['"', '\'', '\\'], "")
    };
    // What `find` and `xargs` put names in place of, and how `printf` ends a line.
    line.replace("{}", " ")
        .replace("\\n", "\n")
        .split(SEPARATORS)
        .any(|part| {
            let words: Words = part
                .split_whitespace()
                .map(word)
                .filter(|word| !word.is_empty())
                .collect();
            (0..words.len()).any(|start| {
                words
                    .get(start..words.len().min(start + WORDS))
                    .is_some_and(&is)
            })
        })
}

/// Whether a shell runs what an expansion gives.
fn runs_unknown(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let is_given = |word: Option<&String>| word.is_none_or(|word| word.starts_with('$'));
    if name(program) == "eval" {
        return is_given(arguments.first());
    }
    let script = || arguments.iter().position(|word| is_flag(word, &['c']));
    is_shell(program) && script().is_some_and(|at| is_given(arguments.get(at + 1)))
}

/// Whether a command of a loop removes what a variable names.
fn removes_variable(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    REMOVERS.contains(&name(program).as_str()) && arguments.iter().any(|word| is_variable(word))
}

fn is_loop(line: &str) -> bool {
    line.split([' ', ';', '\n', '\t'])
        .any(|word| matches!(word, "for" | "while" | "until"))
}

/// Whether a script in the line may remove files.
fn calls_remover(line: &str) -> bool {
    let is_blank = |character: char| character.is_whitespace() || SEPARATORS.contains(&character);
    CALLS.iter().any(|call| line.contains(call)) && line.split(is_blank).any(is_language)
}

/// Whether a loop redirects to a name that depends on it.
fn overwrites_in_a_loop(line: &str) -> bool {
    let parts: Vec<&str> = line.split('>').collect();
    // What follows `>>` is only added to.
    let overwrites = |pair: &[&str]| matches!(pair, [before, target] if !before.is_empty() && is_variable(target));
    parts.windows(2).any(overwrites)
}

/// Whether the text begins with a variable that is a word of its own, or a name in the current folder.
fn is_variable(text: &str) -> bool {
    let text = text.trim_start_matches('|').trim_start().replace('"', "");
    let text = ["./", "$PWD/", "${PWD}/"]
        .iter()
        .find_map(|here| text.strip_prefix(here))
        .unwrap_or(&text);
    let Some(text) = text.strip_prefix('$') else {
        return false;
    };
    let end = text
        .find([' ', ';', '\n', ')', '&', '|'])
        .unwrap_or(text.len());
    let name = text.get(..end).unwrap_or_default().trim_matches(['{', '}']);
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_')
}

impl Uncovered {
    /// Whether a simple command affects more than it names, also by running its arguments, or one of them as a line.
    fn is_emptied_by(self, words: &[String]) -> bool {
        let inner = || (1..words.len()).filter_map(|start| words.get(start..));
        let is_line = |text: &String| {
            text.contains(' ') && may_empty(text, parse(text).ok().as_deref(), self)
        };
        self.is_emptied_by_program(words)
            || (runs_others(words)
                && (inner().any(|words| self.is_emptied_by_program(words) || self.is_open(words))
                    || words.iter().skip(1).any(is_line)))
    }

    fn is_emptied_by_program(self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let has = |wanted: &str| arguments.iter().any(|word| word == wanted);
        let starts = |wanted: &str| arguments.iter().any(|word| word.starts_with(wanted));
        let runs = |programs: &[&str]| {
            arguments
                .iter()
                .any(|word| programs.contains(&name(word).as_str()))
        };
        let runs_remover = || {
            arguments.iter().any(|word| is_shell(word))
                || runs(&REMOVERS)
                || (has(NOTHING) && runs(&COPIERS))
        };
        match name(program).as_str() {
            "find" => {
                has("-delete")
                    || (starts("-exec") && runs_remover())
                    || (starts("-ok") && runs_remover())
            }
            "git" => self.is_emptied_by_git(arguments),
            "rm" | "rimraf" | "trash" => arguments
                .iter()
                .any(|word| matches!(word.trim_end_matches('/'), "." | "..")),
            "fd" | "fdfind" | "parallel" | "xargs" => runs_remover(),
            "rsync" => starts("--del") || starts("--remove-source"),
            "tar" | "bsdtar" | "gtar" => has("--remove-files"),
            "zip" => has("--move") || arguments.iter().any(|word| is_flag(word, &['m'])),
            // Text passed to another shell is a line of its own.
            program if is_shell(program) || program == "eval" => arguments
                .iter()
                .any(|text| may_empty(text, parse(text).ok().as_deref(), self)),
            program if is_language(program) => {
                arguments.iter().any(|text| may_empty(text, None, self))
            }
            _ => false,
        }
    }

    /// What removes ignored files, or objects that undo may need. All else is covered, git's own state too.
    fn is_emptied_by_git(self, arguments: &[String]) -> bool {
        let has = |wanted: &str| arguments.iter().any(|word| word == wanted);
        let flagged = |letters: &[char]| arguments.iter().any(|word| is_flag(word, letters));
        let removes_objects = has("prune")
            || has("filter-branch")
            || (has("gc") && arguments.iter().any(|word| word.starts_with("--prune")))
            || (has("repack") && flagged(&['a', 'd']))
            || (has("reflog") && (has("expire") || has("delete")));
        let forced = arguments
            .iter()
            .filter(|word| *word == "-f" || *word == "--force")
            .count()
            > 1
            || arguments
                .iter()
                .any(|word| word.matches('f').count() > 1 && is_flag(word, &['f']));
        let removes_ignored = (has("clean") && (forced || flagged(&['x', 'X'])))
            || (has("stash") && (has("--all") || flagged(&['a'])))
            || (has("worktree") && has("remove"));
        // An alias that the line itself defines is a line of its own, and so is what git runs for each submodule or commit.
        let alias = |word: &String| {
            word.split_once("=!")
                .is_some_and(|(_, line)| may_empty(line, None, self))
        };
        let runs =
            has("foreach") || has("run") || has("--exec") || (has("rebase") && flagged(&['x']));
        removes_objects
            || (self == Self::Ignored && removes_ignored)
            || arguments
                .iter()
                .any(|word| alias(word) || (runs && may_empty(word, None, self)))
    }

    /// Whether the names given to a removing command depend on the shell.
    fn is_open(self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let any = |marks: &[char]| {
            arguments
                .iter()
                .any(|word| word.contains(marks) && self.may_match(word))
        };
        let is_all = || {
            arguments
                .iter()
                .any(|word| is_everything(word) && self.may_match(word))
        };
        // The names came from a substitution, which is another part of the line.
        let is_bare = || {
            arguments.iter().all(|word| word.starts_with('-'))
                || arguments.iter().any(|word| word == "$")
        };
        match name(program).as_str() {
            "rm" | "rimraf" | "srm" | "trash" | "trash-put" => {
                let is_recursive = arguments
                    .iter()
                    .any(|word| word == "--recursive" || is_flag(word, &['r', 'R']));
                is_bare() || (is_recursive && any(&['*', '?', '[', '$', '!', '~'])) || is_all()
            }
            "mv" => is_bare() || any(&['*', '!']),
            "dd" | "shred" | "truncate" | "unlink" | "wipe" => any(&['*', '$']),
            "tee" => is_all(),
            "cp" | "install" | "ln" => {
                arguments.iter().any(|word| word == NOTHING) && any(&['*', '$'])
            }
            "alias" => arguments
                .iter()
                .filter_map(|word| word.split_once('='))
                .any(|(_, runs)| {
                    runs.split(' ')
                        .next()
                        .is_some_and(|program| REMOVERS.contains(&name(program).as_str()))
                }),
            // A program whose name an expansion gives may be any of them.
            program if program.starts_with('$') => is_all(),
            "perl" | "sed" => arguments.iter().any(|word| is_flag(word, &['i'])) && is_all(),
            _ => false,
        }
    }

    /// Whether a word that the shell expands may become a name of what is not covered.
    fn may_match(self, word: &str) -> bool {
        let word = word.trim_start_matches("./");
        self == Self::Ignored || word.contains('$') || word.starts_with('.') || word.contains("/.")
    }
}

/// Whether a pattern has all names of a folder, or of everything below it.
fn is_everything(word: &str) -> bool {
    let last = word.rsplit('/').next().unwrap_or(word);
    word.contains("**")
        || matches!(
            last,
            "*" | ".*" | "*.*" | "?*" | ".[!.]*" | ".??*" | ".[^.]*"
        )
}

fn is_shell(program: &str) -> bool {
    matches!(
        name(program).as_str(),
        "sh" | "ash" | "bash" | "dash" | "ksh" | "zsh" | "fish"
    )
}

fn is_language(program: &str) -> bool {
    let name = name(program);
    LANGUAGES.contains(
        &name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.'),
    )
}

/// Whether a word is a group of one-letter options that contains one of these.
fn is_flag(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

#[cfg(test)]
mod tests;
