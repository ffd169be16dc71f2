//! Command lines that may remove or overwrite much: since undo may not cover that, they require approval in every mode.
//!
//! A line is judged by its commands, those in substitutions and compound commands too. In text that no shell reads
//! (another language, a broken line) any word may begin a command.
//!
//! This is no security boundary (the sandbox is), so a program's own code is not analyzed: only the names of what
//! removes files in scripting languages are.

use super::programs::runs_others;
use crate::text::shell::Dialect;
use crate::text::shell::{Command, Piece, Redirection, Word, is_shell, program_name as name, read};

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

/// Whether the line may remove or overwrite more than it names, among what is not covered.
pub(super) fn may_empty(text: &str, uncovered: Uncovered) -> bool {
    calls_remover(text)
        || match read(text, Dialect::Posix) {
            Ok(line) => {
                // What a shell in the line reads may be in another command of it.
                let is_shell = |command: &&Command| {
                    command
                        .words
                        .first()
                        .is_some_and(|word| is_shell(&word.written()))
                };
                let is_fed = line.all().iter().any(is_shell);
                let commands: Vec<&Command> = line.commands.iter().collect();
                uncovered.is_emptied_by_any(&commands, false, is_fed)
            }
            Err(_) => uncovered.is_emptied_by_text(text),
        }
}

/// Whether this is said of the words of any command in the line: from any of them on where it runs others, and in a
/// line that cannot be read.
pub(super) fn has_candidate(text: &str, is: impl Fn(&[Word]) -> bool) -> bool {
    match read(text, Dialect::Posix) {
        Ok(line) => line.all().iter().any(|command| {
            let texts: Vec<String> = command.words.iter().map(Word::written).collect();
            is(&command.words) || (runs_others(&texts) && suffixes(&command.words).any(&is))
        }),
        Err(_) => has_candidate_in_text(text, is),
    }
}

/// Whether this is said of the words of what may be a command in text that no shell reads.
pub(super) fn has_candidate_in_text(text: &str, is: impl Fn(&[Word]) -> bool) -> bool {
    let blank = |character| match character {
        '[' | ']' | '<' | '>' | ',' | '\'' | '"' | '\\' | '#' => ' ',
        other => other,
    };
    // A here-string may write its blanks as escapes.
    let text = text.replace("\\n", "\n").replace("\\t", "\t");
    let text: String = text.chars().map(blank).collect();
    let parts = text.split([';', '|', '&', '\n', '(', ')', '{', '}', '`']);
    let lines = parts.filter_map(|part| read(part, Dialect::Posix).ok());
    lines
        .flat_map(|line| line.commands)
        .any(|command| suffixes(&command.words).any(&is))
}

/// The words from any of them on.
fn suffixes(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    (0..words.len()).filter_map(|start| words.get(start..words.len().min(start + WORDS)))
}

/// Whether the word is a variable on its own, or names something in the current folder by one.
fn is_variable(word: &Word) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_${}".contains(c);
    let written = word.written();
    let inside = ["./", "$PWD/", "${PWD}/"]
        .iter()
        .find_map(|here| written.strip_prefix(here));
    let variable = inside.unwrap_or(&written).strip_prefix('$');
    variable.is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
        && word
            .expansions()
            .all(|expansion| expansion.commands.is_empty())
}

/// Whether a script in the line may remove files.
fn calls_remover(line: &str) -> bool {
    let is_blank = |character: char| character.is_whitespace() || ";|&(){}`".contains(character);
    CALLS.iter().any(|call| line.contains(call)) && line.split(is_blank).any(is_language)
}

impl Uncovered {
    fn is_emptied_by_any(self, commands: &[&Command], in_loop: bool, is_fed: bool) -> bool {
        commands.iter().any(|command| {
            let in_loop = in_loop || matches!(command.keyword, Some("for" | "while" | "until"));
            self.is_emptied_by(command, in_loop, is_fed)
                || self.is_emptied_by_any(&command.inner(), in_loop, is_fed)
        })
    }

    /// Whether a simple command affects more than it names, also by running its arguments, or one of them as a line.
    fn is_emptied_by(self, command: &Command, in_loop: bool, is_fed: bool) -> bool {
        let overwrites = |target: &&Redirection| {
            matches!(target.operator, ">" | ">|" | "&>") && is_variable(&target.target)
        };
        if in_loop
            && command
                .redirections
                .iter()
                .any(|target| overwrites(&target))
        {
            return true;
        }
        let targets = command
            .redirections
            .iter()
            .map(|redirection| &redirection.target);
        let documents = command
            .redirections
            .iter()
            .filter_map(Redirection::document);
        let words: Vec<Word> = command.words.iter().chain(targets).cloned().collect();
        let texts: Vec<String> = words.iter().map(Word::written).collect();
        let Some(program) = texts.first() else {
            return false;
        };
        let runs_words = runs_others(&texts);
        let is_line =
            |text: &String| text.contains(' ') && may_empty(&text.replace("\\n", "\n"), self);
        (in_loop && REMOVERS.contains(&name(program).as_str()) && words.iter().any(is_variable))
            || runs_unknown(&words, &texts)
            || self.is_emptied_by_program(&texts)
            || self.is_open(&words, false)
            || (runs_words
                && suffixes(&words)
                    .skip(1)
                    .any(|words| self.is_emptied_by_words(words)))
            || ((runs_words || is_fed)
                && texts
                    .iter()
                    .chain(&documents.map(Word::written).collect::<Vec<_>>())
                    .any(is_line))
    }

    /// Whether these words empty it as a command whose arguments may come from elsewhere.
    fn is_emptied_by_words(self, words: &[Word]) -> bool {
        let texts: Vec<String> = words.iter().map(Word::written).collect();
        self.is_emptied_by_program(&texts) || self.is_open(words, true)
    }

    /// Text in which any word may begin a command.
    fn is_emptied_by_text(self, text: &str) -> bool {
        has_candidate_in_text(text, |words| self.is_emptied_by_words(words))
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
                let removes =
                    has("-delete") || ((starts("-exec") || starts("-ok")) && runs_remover());
                removes && (self == Self::Ignored || !finds_no_object(arguments))
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
            program if is_shell(program) || program == "eval" => {
                arguments.iter().any(|text| may_empty(text, self))
            }
            program if is_language(program) => arguments
                .iter()
                .any(|text| calls_remover(text) || self.is_emptied_by_text(text)),
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
                .is_some_and(|(_, line)| may_empty(line, self))
        };
        let runs =
            has("foreach") || has("run") || has("--exec") || (has("rebase") && flagged(&['x']));
        removes_objects
            || (self == Self::Ignored && removes_ignored)
            || arguments
                .iter()
                .any(|word| alias(word) || (runs && may_empty(word, self)))
    }

    /// Whether the names given to a removing command depend on the shell, or come from another command.
    fn is_open(self, words: &[Word], is_given: bool) -> bool {
        let texts: Vec<String> = words.iter().map(Word::written).collect();
        let Some((program, arguments)) = texts.split_first() else {
            return false;
        };
        let any = |marks: &[char]| {
            let is_marked =
                |word: &&Word| marks_of(word).contains(marks) && self.may_match(&word.written());
            words.iter().skip(1).any(|word| is_marked(&word))
        };
        let is_all = || {
            let is_everything = |word: &&Word| {
                !marks_of(word).is_empty()
                    && is_everything(&word.written())
                    && self.may_match(&word.written())
            };
            words.iter().skip(1).any(|word| is_everything(&word))
        };
        let is_bare = || {
            let mut expansions = words.iter().skip(1).flat_map(Word::expansions);
            expansions.any(|expansion| !expansion.commands.is_empty())
                || (is_given && arguments.iter().all(|word| word.starts_with('-')))
        };
        match name(program).as_str() {
            "rm" | "rimraf" | "srm" | "trash" | "trash-put" => {
                let is_recursive = arguments
                    .iter()
                    .any(|word| word == "--recursive" || is_flag(word, &['r', 'R']));
                is_bare() || (is_recursive && any(&['*', '?', '[', '$', '`', '!', '~'])) || is_all()
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
        self == Self::Ignored
            || word.contains(['$', '`', '{'])
            || word.starts_with('.')
            || word.contains("/.")
    }
}

/// Whether a `find` does something only with files whose names end like those of none of git's objects.
fn finds_no_object(arguments: &[String]) -> bool {
    let acts = |word: &String| {
        ["-delete", "-exec", "-ok"]
            .iter()
            .any(|it| word.starts_with(it))
    };
    let may_skip = |word: &String| ["-o", "-or", ",", "!", "-not"].contains(&word.as_str());
    let tests = arguments.split(acts).next().unwrap_or_default();
    let is_other = |pair: &[String]| match pair {
        [test, name] if ["-name", "-iname"].contains(&test.as_str()) => {
            let end = name.rsplit_once('.').map_or("", |(_, end)| end);
            let is_plain = !end.is_empty() && end.chars().all(|c| c.is_ascii_alphanumeric());
            is_plain && !["idx", "pack", "rev"].contains(&end.to_lowercase().as_str())
        }
        _ => false,
    };
    tests.windows(2).any(is_other) && !tests.iter().any(may_skip)
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

/// The open pieces of a word, as written.
fn marks_of(word: &Word) -> String {
    word.pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(_) => "",
            Piece::Pattern(pattern) => pattern,
            Piece::Expansion(expansion) => &expansion.source,
        })
        .collect()
}

/// Whether a shell runs what an expansion gives.
fn runs_unknown(words: &[Word], texts: &[String]) -> bool {
    let Some((program, arguments)) = texts.split_first() else {
        return false;
    };
    let is_given = |at: usize| {
        words
            .get(at + 1)
            .is_none_or(|word| !marks_of(word).is_empty())
    };
    if name(program) == "eval" {
        return is_given(0);
    }
    let script = || arguments.iter().position(|word| is_flag(word, &['c']));
    is_shell(program) && script().is_some_and(|at| is_given(at + 1))
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
