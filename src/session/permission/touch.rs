//! Whether a rule that restricts matches a command line: surely, not, or it cannot be decided.
//!
//! All commands of the line count, those in substitutions and compound commands too. A command that may run another one
//! cannot be decided, unless what it runs is a line of its own that can be read.

use super::emptying::has_candidate_in_text;
use super::programs::{Runs, depends_on_options, is_evaluated, is_prefix, runs, takes_data};
use super::rule::{Rule, Touch};
use super::windows;
use crate::text::shell::{
    Command, Dialect, Expansion, Line, Piece, Word, Words, is_shell, program_name, read,
};

/// Operators of `[[` whose operands are evaluated.
const CALCULATES: [&str; 8] = ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// How deep lines in lines are read.
const DEPTH: usize = 8;

/// For a line of a POSIX shell.
pub(super) fn touched(rule: &Rule, line: &Line) -> Touch {
    touched_within(rule, line, DEPTH)
}

fn touched_within(rule: &Rule, line: &Line, depth: usize) -> Touch {
    let commands = line.all();
    let touches = commands
        .iter()
        .map(|command| by_command(rule, command, depth));
    touches.max().unwrap_or(Touch::Perhaps)
}

fn by_command(rule: &Rule, command: &Command, depth: usize) -> Touch {
    let targets = command
        .redirections
        .iter()
        .map(|redirection| &redirection.target);
    let mut words = command
        .assignments
        .iter()
        .chain(&command.words)
        .chain(targets);
    let evaluates = words.any(|word| word.expansions().any(|expansion| expansion.evaluates))
        || command
            .assignments
            .iter()
            .any(|word| is_set(rule, &word.written()));
    let touch = match command.keyword {
        None => by_words(rule, command, depth),
        Some("[[") if calculates(&command.words) => Touch::Perhaps,
        Some(_) => Touch::Not,
    };
    if evaluates {
        touch.max(Touch::Perhaps)
    } else {
        touch
    }
}

/// Whether `NAME=value` may make something run what the rule is about.
fn is_set(rule: &Rule, word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let mut programs = value.split(|c: char| !(c.is_alphanumeric() || "_./-".contains(c)));
    name.contains('[')
        || is_evaluated(name.trim_end_matches('+'))
        || programs.any(|program| rule.is_about_program(&program_name(program)))
}

/// Whether `[[` evaluates a word that is no number.
fn calculates(words: &[Word]) -> bool {
    let texts: Words = words.iter().map(Word::written).collect();
    let is_number = |text: &String| {
        matches!(text.as_str(), "$#" | "$?") || text.chars().all(|c| c.is_ascii_digit())
    };
    texts.iter().enumerate().any(|(at, text)| {
        let beside = [at.checked_sub(1), Some(at + 1)]
            .into_iter()
            .flatten()
            .filter_map(|at| texts.get(at));
        CALCULATES.contains(&text.as_str()) && !beside.clone().all(is_number)
    })
}

fn by_words(rule: &Rule, command: &Command, depth: usize) -> Touch {
    let words = command.words.as_slice();
    let Some((program, arguments)) = words.split_first() else {
        return Touch::Not;
    };
    let Some(program) = program.text() else {
        return Touch::Perhaps;
    };
    let touch = touches(rule, words);
    if touch != Touch::Not {
        return touch;
    }
    if let Some(line) = line_of(&program, arguments) {
        let read = read(&line, Dialect::Posix).ok().filter(|_| depth > 0);
        return read.map_or(Touch::Perhaps, |line| {
            touched_within(rule, &line, depth - 1)
        });
    }
    let asks_where = |word: &Word| matches!(word.text().as_deref(), Some("-v" | "-V"));
    if program == "command" && arguments.first().is_some_and(asks_where) {
        return Touch::Not;
    }
    if let Some(touch) = behind(rule, command, &program, depth) {
        return touch;
    }
    let texts: Words = words.iter().map(Word::written).collect();
    let names =
        |word: &String| word.contains('=') && !word.starts_with('-') && is_set_to(rule, word);
    if runs(&texts) == Runs::Others
        || (depends_on_options(&program)
            && !is_plain_test(words)
            && arguments.iter().any(may_be_option))
        || texts.iter().skip(1).any(names)
        || (!takes_data(&program) && mentions(rule, command))
    {
        Touch::Perhaps
    } else {
        Touch::Not
    }
}

/// For a program that runs the words behind its options: any of them that may begin the command counts. `None` where they
/// do not say what runs.
fn behind(rule: &Rule, command: &Command, program: &str, depth: usize) -> Option<Touch> {
    let texts: Words = command
        .words
        .iter()
        .map(Word::text)
        .collect::<Option<_>>()?;
    if !is_prefix(program) || depth == 0 {
        return None;
    }
    let (name, mut touch, mut may_be_value) = (program_name(program), Touch::Not, false);
    let mut replaced: Option<&str> = None;
    let mut at = 1;
    while let Some(text) = texts.get(at) {
        let is_option = text.starts_with('-');
        let is_set_here = name == "env" && !is_option && text.contains('=');
        match (name.as_str(), text.as_str()) {
            ("env", "-" | "--" | "-i" | "-u" | "-C" | "--ignore-environment") => {}
            ("env", option) if is_option && !option.starts_with("--unset=") => return None,
            ("xargs", option)
                if ["-i", "-J", "-R", "--r"]
                    .iter()
                    .any(|it| option.starts_with(it)) =>
            {
                return None;
            }
            ("xargs", "-I") => {
                replaced = texts.get(at + 1).map(String::as_str);
                at += 1;
            }
            ("xargs", option) if option.starts_with("-I") => replaced = option.get(2..),
            _ if is_set_here && is_set(rule, text) => touch = touch.max(Touch::Perhaps),
            _ => {}
        }
        if !is_option && !is_set_here {
            if replaced.is_some_and(|mark| text.contains(mark)) {
                return None;
            }
            touch = touch.max(by_words(rule, &inner(command, at, &name), depth - 1));
            if !may_be_value && !text.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
        }
        let is_alone = text.ends_with(|c: char| c.is_ascii_digit()) || text == "-r";
        may_be_value = is_option && !is_alone && replaced.is_none();
        at += 1;
    }
    Some(touch)
}

/// The command that begins with a word of another one; what `xargs` reads stands behind it.
fn inner(command: &Command, at: usize, name: &str) -> Command {
    let read = Expansion {
        source: "$@".to_owned(),
        commands: Vec::new(),
        is_quoted: false,
        evaluates: false,
    };
    let read = (name == "xargs").then(|| Word {
        pieces: vec![Piece::Expansion(read)],
    });
    Command {
        words: command.words.iter().skip(at).cloned().chain(read).collect(),
        redirections: command.redirections.clone(),
        ..Command::default()
    }
}

/// Whether the rule matches the words as the command that they are.
fn touches(rule: &Rule, words: &[Word]) -> Touch {
    let Some((program, arguments)) = words.split_first() else {
        return Touch::Not;
    };
    // `/bin/rm` is `rm`, and so is `RM` where the disk does not care about case.
    let mut base = Word::default();
    base.push(&program_name(&program.written()));
    let by_name: Vec<Word> = std::iter::once(&base).chain(arguments).cloned().collect();
    // `git --no-pager push` and `git -C folder push` may be `git push`.
    let is_option = |at: usize| {
        let text = arguments.get(at).and_then(Word::text);
        text.is_some_and(|text| text.starts_with('-'))
    };
    let is_skipped = |at: &usize| is_option(*at) || *at > 0 && is_option(at - 1);
    let bare = (0..arguments.len()).take_while(is_skipped).map(|at| {
        let words: Vec<Word> = std::iter::once(&base)
            .chain(arguments.iter().skip(at + 1))
            .cloned()
            .collect();
        rule.touches(&words).min(Touch::Perhaps)
    });
    bare.fold(rule.touches(words).max(rule.touches(&by_name)), Touch::max)
}

/// Whether what the rule is about stands among the arguments or in the input: as words, or as the text of one.
fn mentions(rule: &Rule, command: &Command) -> bool {
    let words = command.words.as_slice();
    let input = command
        .redirections
        .iter()
        .flat_map(|input| [Some(&input.target), input.document()])
        .flatten();
    let is_touched = |words: &[Word]| touches(rule, words) != Touch::Not;
    let in_text = |word: &Word| {
        let text = word.written();
        // A value may be attached to its option.
        let value = text.strip_prefix('-').and_then(|option| option.get(1..));
        [text.as_str(), value.unwrap_or_default()]
            .iter()
            .any(|text| has_candidate_in_text(&text.replace('=', " "), is_touched))
    };
    (1..words.len()).any(|at| words.get(at..).is_some_and(is_touched))
        || words.iter().skip(1).chain(input).any(in_text)
}

/// Whether an argument `name=value` names what the rule is about.
fn is_set_to(rule: &Rule, word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(_, value)| is_set(rule, &format!("_={value}")))
}

/// Whether the operands of `test` are operands whatever their values are: beside a single operator.
fn is_plain_test(words: &[Word]) -> bool {
    let is_operator =
        |word: &str| word.starts_with(['-', '=', '!']) && !["-v", "-R"].contains(&word);
    let is_one = |word: &Word| {
        word.text().is_some() || word.expansions().all(|expansion| expansion.is_quoted)
    };
    let texts: Words = words
        .iter()
        .map(Word::written)
        .filter(|text| text != "]")
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    words.iter().all(is_one)
        && match texts.as_slice() {
            ["test" | "[", "!", rest @ ..] | ["test" | "[", rest @ ..] => match rest {
                [operator, _] | [_, operator, _] => is_operator(operator),
                _ => false,
            },
            _ => false,
        }
}

/// The line that a shell or `eval` runs, if all of it is known.
fn line_of(program: &str, arguments: &[Word]) -> Option<String> {
    let texts: Words = arguments.iter().map(Word::text).collect::<Option<_>>()?;
    match (program_name(program).as_str(), texts.as_slice()) {
        ("eval", [first, rest @ ..]) if first == "--" => Some(rest.join(" ")),
        ("eval", [_, ..]) => Some(texts.join(" ")),
        ("trap", [line, _, ..]) if !line.starts_with('-') => Some(line.clone()),
        (shell, [flags, rest @ ..]) if is_shell(shell) => {
            let letters = flags.strip_prefix('-')?;
            let is_plain =
                letters.contains('c') && letters.chars().all(|letter| "celux".contains(letter));
            let mut rest = rest.iter();
            let line = rest
                .next()
                .filter(|line| *line != "--")
                .or_else(|| rest.next())?;
            // An option behind `-c` is none of the line.
            (is_plain && !line.starts_with(['-', '+'])).then(|| line.clone())
        }
        _ => None,
    }
}

/// Whether a word that depends on more than the line may become an option.
fn may_be_option(word: &Word) -> bool {
    let is_split = word.expansions().any(|expansion| !expansion.is_quoted);
    match word.pieces.first() {
        Some(Piece::Text(text)) if !text.is_empty() => {
            word.text().is_none() && (is_split || text.starts_with('-'))
        }
        _ => word.text().is_none(),
    }
}

/// For a command on Windows, where a program has several names, case never counts, and options can be shortened.
pub(super) fn touched_on_windows(rule: &Rule, words: &[String]) -> Touch {
    let Some((program, arguments)) = words.split_first() else {
        return Touch::Perhaps;
    };
    let arguments = arguments.iter().map(|word| word.to_lowercase());
    let canonical: Vec<String> = std::iter::once(windows::canonical(program))
        .chain(arguments)
        .collect();
    let rule = rule.on_windows();
    if rule.has_words(&canonical) {
        Touch::Surely
    } else if windows::runs_others(program)
        || canonical
            .first()
            .is_some_and(|program| rule.is_about_program(program))
    {
        Touch::Perhaps
    } else {
        Touch::Not
    }
}
