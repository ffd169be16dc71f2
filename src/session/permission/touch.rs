//! Whether a rule that restricts matches a command line: surely, not, or it cannot be decided.
//!
//! All commands of the line count, those in substitutions and compound commands too. A command that may run another one
//! cannot be decided, unless what it runs is a line of its own that can be read.

use super::emptying::has_candidate_in_text;
use super::numbers::Numbers;
use super::programs::{
    OPEN, Runs, depends_on_options, is_prefix, is_script, runs, runs_nothing, sets_program,
    takes_data,
};
use super::rule::{Rule, Touch};
use super::windows;
use crate::text::lists;
use crate::text::shell::{
    Command, Dialect, Expansion, Line, Piece, Word, Words, is_shell, program_name, read,
};

/// Operators of `[[` whose operands are evaluated.
const CALCULATES: &str = "-v -R -eq -ne -lt -le -gt -ge";

/// How deep lines in lines are read.
const DEPTH: usize = 8;

/// What a command is judged within.
struct Scope {
    /// How deep lines in it are read.
    depth: usize,
    numbers: Numbers,
}

impl Scope {
    /// The scope of a line in a word of the command. Its variables may have been set outside of it.
    fn inner(&self) -> Self {
        Self {
            depth: self.depth - 1,
            numbers: Numbers::default(),
        }
    }
}

/// For a line of a POSIX shell.
pub(super) fn touched(rule: &Rule, line: &Line) -> Touch {
    let scope = Scope {
        depth: DEPTH,
        numbers: Numbers::of(line),
    };
    touched_within(rule, line, &scope)
}

fn touched_within(rule: &Rule, line: &Line, scope: &Scope) -> Touch {
    let commands = line.all();
    let touches = commands
        .iter()
        .map(|command| by_command(rule, command, scope));
    touches.max().unwrap_or(Touch::Perhaps)
}

fn by_command(rule: &Rule, command: &Command, scope: &Scope) -> Touch {
    let mut expansions = command.all_words().flat_map(Word::expansions);
    let evaluates = expansions.any(|it| it.evaluates && !scope.numbers.suffice(it))
        || command
            .assignments
            .iter()
            .any(|word| is_set(rule, &word.written()));
    let touch = match command.keyword {
        None => by_words(rule, command, scope),
        Some("[[") if calculates(&command.words, &scope.numbers) => Touch::Perhaps,
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
        || sets_program(name.trim_end_matches('+'), value)
        || programs.any(|program| rule.is_about_program(&program_name(program)))
}

/// Whether `[[` evaluates a word that is not a number.
fn calculates(words: &[Word], numbers: &Numbers) -> bool {
    let is_number = |word: &Word| numbers.has(word) || numbers.suffice_for(&word.written());
    words.iter().enumerate().any(|(at, word)| {
        let mut beside = [at.checked_sub(1), Some(at + 1)]
            .into_iter()
            .flatten()
            .filter_map(|at| words.get(at));
        lists(CALCULATES, &word.written()) && !beside.all(is_number)
    })
}

fn by_words(rule: &Rule, command: &Command, scope: &Scope) -> Touch {
    let words = command.words.as_slice();
    let Some((program, arguments)) = words.split_first() else {
        return Touch::Not;
    };
    // What begins like an option was taken for a program by mistake.
    let Some(program) = program.text().filter(|text| !text.starts_with('-')) else {
        return Touch::Perhaps;
    };
    let touch = touches(rule, words);
    if touch != Touch::Not {
        return touch;
    }
    if let Some(line) = line_of(&program, arguments) {
        let read = read(&line, Dialect::Posix).ok().filter(|_| scope.depth > 0);
        return read.map_or(Touch::Perhaps, |line| {
            touched_within(rule, &line, &scope.inner())
        });
    }
    let is_plain = |word: &Word| {
        word.text()
            .is_some_and(|text| scope.numbers.suffice_for(&text))
    };
    if program == "let" && arguments.iter().all(is_plain) {
        return Touch::Not;
    }
    let texts = arguments
        .iter()
        .map(|word| word.text().unwrap_or_else(|| "-".to_owned()));
    if runs_nothing(&program_name(&program), &texts.collect::<Words>()) {
        return Touch::Not;
    }
    if let Some(touch) = behind(rule, command, &program, scope) {
        return touch;
    }
    let (command, executed) = &without_executed(rule, command, &program, scope);
    if *executed != Touch::Not {
        return *executed;
    }
    let words: Vec<Word> = command
        .words
        .iter()
        .map(|word| scope.numbers.filled(word))
        .collect();
    let (words, is_script) = (words.as_slice(), is_script(&program));
    let arguments = words.get(1..).unwrap_or_default();
    let text = |word: &Word| {
        // What a variable adds to a script is a part of it.
        let is_known = !is_script || word.text().is_some();
        word.written() + if is_known { "" } else { OPEN }
    };
    let texts: Words = words.iter().map(text).collect();
    let names = |word: &String| {
        word.contains('=') && !word.starts_with('-') && !is_script && is_set_to(rule, word)
    };
    if runs(&texts) == Runs::Others
        || (depends_on_options(&program)
            && !is_plain_test(words)
            && options(&program, arguments).any(may_be_option))
        || texts.iter().skip(1).any(names)
        || (!takes_data(&program) && mentions(rule, command))
    {
        Touch::Perhaps
    } else {
        Touch::Not
    }
}

/// For a program that runs the words after its options: each of them that may begin the command counts. `None` if they
/// do not tell what runs.
fn behind(rule: &Rule, command: &Command, program: &str, scope: &Scope) -> Option<Touch> {
    let texts: Words = command.words.iter().map(literal).collect::<Option<_>>()?;
    if !is_prefix(program) || scope.depth == 0 {
        return None;
    }
    let (name, mut touch, mut may_be_value) = (program_name(program), Touch::Not, false);
    let mut replaced: Option<&str> = None;
    let mut at = 1;
    while let Some(text) = texts.get(at) {
        let is_option = text.starts_with('-');
        let is_set_here = name == "env" && !is_option && text.contains('=');
        let is_mark = name == "xargs" && text.starts_with("-I");
        match (name.as_str(), text.as_str()) {
            ("env", "-" | "--" | "-i" | "-u" | "-C" | "--ignore-environment") => {}
            ("env", option) if is_option && !option.starts_with("--unset=") => return None,
            // The mark that is replaced may be named in letters of several options.
            ("xargs", option)
                if ["-i", "-J", "-R", "--r"]
                    .iter()
                    .any(|it| option.starts_with(it))
                    || (is_option
                        && !is_mark
                        && !option.starts_with("--")
                        && option.contains('I')) =>
            {
                return None;
            }
            ("xargs", "-I") => {
                replaced = texts.get(at + 1).map(String::as_str);
                at += 1;
            }
            _ if is_mark => replaced = text.get(2..),
            _ if is_set_here && is_set(rule, text) => touch = touch.max(Touch::Perhaps),
            _ => {}
        }
        if !is_option && !is_set_here {
            // No program has such a name.
            if !text.chars().all(|c| c.is_ascii_digit()) {
                let inner = inner(command, at, &name, replaced);
                touch = touch.max(by_words(rule, &inner, &scope.inner()));
            }
            if !may_be_value && !text.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
        }
        let is_alone = text.ends_with(|c: char| c.is_ascii_digit()) || text == "-r";
        may_be_value = is_option && !is_alone && !is_mark;
        at += 1;
    }
    Some(touch)
}

/// The command that begins with a word of another one. What `xargs` reads follows it, or replaces its mark.
fn inner(command: &Command, at: usize, name: &str, replaced: Option<&str>) -> Command {
    let read = (name == "xargs").then(|| Word {
        pieces: vec![anything()],
    });
    let words = command.words.iter().skip(at);
    let words = words.map(|word| replaced.map_or_else(|| word.clone(), |mark| with(word, mark)));
    Command {
        words: words.chain(read).collect(),
        redirections: command.redirections.clone(),
        ..Command::default()
    }
}

/// A word whose text is known, but for a `mark` in it.
fn with(word: &Word, mark: &str) -> Word {
    let text = literal(word).unwrap_or_default();
    if mark.is_empty() || !text.contains(mark) {
        return word.clone();
    }
    let mut replaced = Word::default();
    for (at, part) in text.split(mark).enumerate() {
        replaced.pieces.extend((at > 0).then(anything));
        if !part.is_empty() {
            replaced.push(part);
        }
    }
    replaced
}

/// What another program puts in place of a mark, or after the words.
fn anything() -> Piece {
    Piece::Expansion(Expansion {
        source: "$@".to_owned(),
        commands: Vec::new(),
        is_quoted: false,
        evaluates: false,
    })
}

/// The text of a word, in which `{}` stands for itself.
fn literal(word: &Word) -> Option<String> {
    let is_literal = |piece: &Piece| match piece {
        Piece::Text(_) => true,
        Piece::Pattern(pattern) => "{}".contains(pattern.as_str()),
        Piece::Expansion(_) => false,
    };
    let text = word.written();
    let is_plain =
        word.pieces.iter().all(is_literal) && !text.replace("{}", "").contains(['{', '}']);
    word.text().or_else(|| is_plain.then_some(text))
}

/// A `find` without the commands that it runs, and whether the rule matches one of those.
fn without_executed(
    rule: &Rule,
    command: &Command,
    program: &str,
    scope: &Scope,
) -> (Command, Touch) {
    let (mut rest, mut touch) = (command.clone(), Touch::Not);
    let is = |word: &Word, texts: &[&str]| {
        word.text()
            .is_some_and(|text| texts.contains(&text.as_str()))
    };
    let is_start = |word: &Word| is(word, &["-exec", "-execdir", "-ok", "-okdir"]);
    while program_name(program) == "find"
        && scope.depth > 0
        && let Some(start) = rest.words.iter().position(is_start)
        && let Some(length) = rest
            .words
            .iter()
            .skip(start)
            .position(|it| is(it, &[";", "+"]))
    {
        let executed = rest.words.drain(start..=start + length);
        let words = executed.skip(1).take(length - 1);
        let executed = Command {
            words: words.map(|word| with(&word, "{}")).collect(),
            redirections: command.redirections.clone(),
            ..Command::default()
        };
        touch = touch.max(by_words(rule, &executed, &scope.inner()));
    }
    (rest, touch)
}

/// Whether the rule matches the command that these words are.
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

/// Whether what the rule is about occurs among the arguments or in the input: as words, or as the text of one.
fn mentions(rule: &Rule, command: &Command) -> bool {
    let words = command.words.as_slice();
    let input = command.redirected();
    // A word that may become anything does not count as a program's name.
    let is_touched = |words: &[Word]| {
        let is_named = words.first().is_some_and(|word| word.text().is_some());
        is_named && touches(rule, words) != Touch::Not
    };
    let in_text = |word: &Word| {
        let text = word.written();
        // A value may be attached to its option.
        let value = text.strip_prefix('-').and_then(|option| option.get(1..));
        [text.as_str(), value.unwrap_or_default()]
            .iter()
            .any(|text| has_candidate_in_text(&text.replace('=', " "), is_touched))
    };
    // An argument that stands for the output of a command is the name of a pipe.
    let is_pipe = |word: &Word| {
        word.expansions()
            .any(|it| it.source.starts_with(['<', '>']))
    };
    (1..words.len())
        .filter_map(|at| words.get(at..))
        .any(|words| !words.first().is_some_and(is_pipe) && is_touched(words))
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
            // An option after `-c` is not part of the line.
            (is_plain && !line.starts_with(['-', '+'])).then(|| line.clone())
        }
        _ => None,
    }
}

/// The arguments that may be options: none of those after the text of `printf` or the script of `awk`.
fn options<'a>(program: &str, arguments: &'a [Word]) -> impl Iterator<Item = &'a Word> {
    let is = |word: &Word, fits: &dyn Fn(&str) -> bool| word.text().is_some_and(|text| fits(&text));
    let is_printed =
        |first: &Word| program == "printf" && is(first, &|text| !text.starts_with('-'));
    let is_awk = program_name(program).ends_with("awk");
    let is_script = move |word: &Word| is_awk && is(word, &|text| text.contains(['{', '/']));
    let count = if arguments.first().is_some_and(is_printed) {
        0
    } else {
        arguments.len()
    };
    let options = arguments.iter().take(count);
    options.take_while(move |word| !is_script(word))
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
