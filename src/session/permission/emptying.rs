//! Command lines that may remove or overwrite much: since undo may not cover that, they require approval in every mode.
//!
//! A line is judged by its commands, those in substitutions and compound commands too. In text that no shell reads
//! (another language, a broken line) any word may begin a command.
//!
//! This is not a security boundary (the sandbox is), so a program's own code is not analyzed: only the names of what
//! removes files in scripting languages are.

use std::collections::HashSet;

use super::programs::{Runs, is_language, runs, runs_others};
use crate::text::lists;
use crate::text::shell::{
    Command, Dialect, Piece, Redirection, Word, is_shell, program_name as name, read,
};

/// Programs that remove content.
const REMOVERS: &str = "
dd mv rename rimraf rm shred srm trash trash-put truncate unlink wipe
";
/// Calls that remove content in scripting languages.
const CALLS: &str = "
Deno.remove Dir.delete File.delete FileUtils.remove FileUtils.rm emptyDir fs.remove fs.rm os.remove
promises.rm remove_tree rm_f rm_rf rmSync rmdirSync rmtree shutil.move truncate unlink
";
/// Programs that write one file over another.
const COPIERS: &str = "cp install ln tee";
/// What they copy to empty a file.
const NOTHING: &str = "/dev/null";
/// How many words a command is judged by.
const WORDS: usize = 1000;
/// How deep lines in lines are read.
const DEPTH: usize = 8;

/// Whether the line may remove or overwrite more than it names.
pub(super) fn may_empty(text: &str) -> bool {
    may_empty_within(text, DEPTH)
}

fn may_empty_within(text: &str, depth: usize) -> bool {
    calls_remover(text)
        || match read(text, Dialect::Posix) {
            Ok(line) if depth > 0 => {
                let scope = Scope {
                    in_loop: false,
                    is_fed: feeds_shell(&line.all()),
                    depth: depth - 1,
                };
                let commands: Vec<&Command> = line.commands.iter().collect();
                is_emptied_by_any(&commands, scope)
            }
            _ => has_candidate_in_text(text, is_broad),
        }
}

/// Whether `is` holds for the words of any command in the line, or in a word that may be a line itself. If the command
/// runs others, or the line cannot be read, any word may be the first of a command.
pub(super) fn has_candidate(text: &str, is: &mut dyn FnMut(&[Word]) -> bool) -> bool {
    has_candidate_within(text, DEPTH, &mut HashSet::new(), is)
}

fn has_candidate_within(
    text: &str,
    depth: usize,
    known: &mut HashSet<(String, usize)>,
    is: &mut dyn FnMut(&[Word]) -> bool,
) -> bool {
    // What is substituted in a word is also found in each command around it.
    if !known.insert((text.to_owned(), depth)) {
        return false;
    }
    let read = read(text, Dialect::Posix).ok().filter(|_| depth > 0);
    let Some(line) = read else {
        return has_candidate_in_text(text, is);
    };
    let commands = line.all();
    let is_fed = feeds_shell(&commands);
    commands.iter().any(|command| {
        let texts: Vec<String> = command.words.iter().map(Word::written).collect();
        let runs = runs(&texts);
        // An assignment alone runs nothing.
        let runs_texts = is_fed || (runs == Runs::Others && !texts.is_empty());
        is(&command.words)
            || ((is_fed || runs != Runs::Itself) && suffixes(&command.words).any(&mut *is))
            || (runs_texts
                && command.all_words().any(|word| {
                    let text = word.written();
                    // A variable or an alias may be set to a line.
                    (is_line(word) && has_candidate_within(&text, depth - 1, known, is))
                        || has_candidate_in_text(&text.replace(['=', '!'], " "), &mut *is)
                }))
    })
}

/// Whether a shell in the line may run what another command in it writes, or the value of a variable.
fn feeds_shell(commands: &[&Command]) -> bool {
    let simple = commands.iter().filter(|command| command.keyword.is_none());
    simple.map(|command| &command.words).any(|words| {
        let texts: Vec<String> = words.iter().map(Word::written).collect();
        words
            .first()
            .is_some_and(|program| program.text().is_none())
            || (runs_others(&texts) && texts.iter().any(|it| is_shell(it) || it == "eval"))
    })
}

/// Whether a word may be a line of its own: it has a blank, which was quoted.
fn is_line(word: &Word) -> bool {
    let is_blank = [' ', '\t', '\n'];
    let mut pieces = word.pieces.iter();
    pieces.any(|piece| matches!(piece, Piece::Text(text) if text.contains(is_blank)))
}

/// Whether `is` holds for the words of what may be a command in text that no shell reads.
pub(super) fn has_candidate_in_text(text: &str, mut is: impl FnMut(&[Word]) -> bool) -> bool {
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
        .any(|command| suffixes(&command.words).any(&mut is))
}

/// The words from each of them on.
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
    CALLS
        .split_ascii_whitespace()
        .any(|call| line.contains(call))
        && line.split(is_blank).any(is_language)
}

/// What a command is judged within.
#[derive(Clone, Copy)]
struct Scope {
    in_loop: bool,
    /// Whether a shell may run any text of the line.
    is_fed: bool,
    /// How deep lines in it are read.
    depth: usize,
}

fn is_emptied_by_any(commands: &[&Command], scope: Scope) -> bool {
    commands.iter().any(|command| {
        let is_loop = matches!(command.keyword, Some("for" | "while" | "until"));
        let scope = Scope {
            in_loop: scope.in_loop || is_loop,
            ..scope
        };
        is_emptied_by(command, scope) || is_emptied_by_any(&command.inner(), scope)
    })
}

/// Whether a simple command affects more than it names, also by running its arguments, or one of them as a line.
fn is_emptied_by(command: &Command, scope: Scope) -> bool {
    let Scope {
        in_loop, is_fed, ..
    } = scope;
    let redirections = &command.redirections;
    let overwrites = |target: &Redirection| {
        matches!(target.operator, ">" | ">|" | "&>") && is_variable(&target.target)
    };
    let targets = redirections.iter().map(|redirection| &redirection.target);
    let words: Vec<Word> = command.words.iter().chain(targets).cloned().collect();
    let texts: Vec<String> = words.iter().map(Word::written).collect();
    let runs_words = runs_others(&texts);
    let empties = |text: &str| {
        text.contains(' ') && may_empty_within(&text.replace("\\n", "\n"), scope.depth)
    };
    // An alias is set to a line.
    let has_line = |word: &Word| {
        let text = word.written();
        let value = text.split_once('=').map_or("", |(_, value)| value);
        is_line(word) && (empties(&text) || empties(value.trim_start_matches('!')))
    };
    let documents = redirections.iter().filter_map(Redirection::document);
    (in_loop && redirections.iter().any(overwrites))
        || (in_loop && texts.first().is_some_and(|it| removes(it)) && words.iter().any(is_variable))
        || runs_unknown(&words, &texts)
        || (command.keyword.is_none() && is_broad(&words))
        || (runs_words && suffixes(&words).any(is_broad))
        || ((runs_words || is_fed)
            && (words.iter().any(has_line)
                || documents.map(Word::written).any(|text| empties(&text))))
}

/// Whether these words affect more than they name, or something that comes from elsewhere.
fn is_broad(words: &[Word]) -> bool {
    let texts: Vec<String> = words.iter().map(Word::written).collect();
    let Some((program, arguments)) = texts.split_first() else {
        return false;
    };
    let has = |wanted: &str| arguments.iter().any(|word| word == wanted);
    let starts = |wanted: &str| arguments.iter().any(|word| word.starts_with(wanted));
    let flagged = |letters: &[char]| arguments.iter().any(|word| is_flag(word, letters));
    let copies_nothing = |word: &str| has(NOTHING) && lists(COPIERS, &name(word));
    // Marks of words that may name several things or anything. A word that names everything, or comes from another
    // command, always counts.
    let marks: &[char] = match name(program).as_str() {
        "fd" | "fdfind" | "find" | "parallel" | "xargs" => {
            return has("-delete")
                || arguments
                    .iter()
                    .any(|word| is_shell(word) || removes(word) || copies_nothing(word));
        }
        "git" => return is_broad_git(arguments),
        "rsync" | "tar" | "bsdtar" | "gtar" => return starts("--del") || starts("--remove-"),
        "zip" => return has("--move") || flagged(&['m']),
        program
            if is_language(program)
                && arguments
                    .iter()
                    .any(|text| has_candidate_in_text(text, is_broad)) =>
        {
            return true;
        }
        "rm" | "rimraf" | "srm" | "trash" | "trash-put" => {
            let is_here = |word: &String| matches!(word.trim_end_matches('/'), "." | "..");
            if arguments.iter().any(is_here) {
                return true;
            }
            let is_recursive = has("--recursive") || flagged(&['r', 'R']);
            if is_recursive {
                &['*', '?', '[', '$', '`', '!', '~']
            } else {
                &[]
            }
        }
        "mv" => &['*', '!'],
        "rename" => return false,
        program if removes(program) || copies_nothing(program) => &['*', '$'],
        "perl" | "sed" if flagged(&['i']) => &[],
        "tee" => &[],
        // It may be any of them.
        program if program.starts_with('$') => &[],
        _ => return false,
    };
    let is_remover = removes(program);
    let is_open = |word: &Word| {
        let open = marks_of(word);
        let mut expansions = word.expansions();
        open.contains(marks)
            || (!open.is_empty() && is_everything(&word.written()))
            || (is_remover && expansions.any(|expansion| !expansion.commands.is_empty()))
    };
    words.iter().skip(1).any(is_open)
        || (is_remover && arguments.iter().all(|word| word.starts_with('-')))
}

/// Whether git removes ignored files or its objects. Undo covers everything else, git's own state included.
fn is_broad_git(arguments: &[String]) -> bool {
    let has = |wanted: &str| arguments.iter().any(|word| word == wanted);
    let flagged = |letters: &[char]| arguments.iter().any(|word| is_flag(word, letters));
    let options = arguments.iter().filter(|word| word.starts_with('-'));
    let forces = options.map(|word| word.matches('f').count()).sum::<usize>();
    has("prune")
        || has("filter-branch")
        || (has("gc") && arguments.iter().any(|word| word.starts_with("--prune")))
        || (has("repack") && flagged(&['a', 'd']))
        || (has("reflog") && (has("expire") || has("delete")))
        || (has("clean") && (forces > 1 || flagged(&['x', 'X'])))
        || (has("stash") && (has("--all") || flagged(&['a'])))
        || (has("worktree") && has("remove"))
}

fn removes(program: &str) -> bool {
    lists(REMOVERS, &name(program))
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

/// Whether a word is a group of one-letter options that contains one of these.
pub(super) fn is_flag(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

#[cfg(test)]
mod tests;
