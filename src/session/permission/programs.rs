//! Knowledge about programs: which run other programs.
//!
//! These lists serve rules (the first words of such a command do not say what it does); the security boundary is the
//! sandbox.

mod known;
mod scripts;

use known::{
    CONTAINERS, CONTEXT, DATA, EVALUATED, INTERPRETERS, LAUNCHERS, MODULES, NAMING, NO_SUBCOMMANDS,
    PLAIN_VALUES, PREFIXES, READING, RUNNING, RUNNING_NOTHING, SCRIPT_RUNNERS, SETTING, SQLITE,
    STEMS, WRAPPERS,
};
use scripts::is_plain_script;
pub(super) use scripts::is_script;

use crate::text::lists;
use crate::text::shell::{is_shell, program_name as name};

/// What a command may run besides its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// Nothing that its words do not show.
    Itself,
    /// Nothing, but later commands may mean something else.
    Later,
    /// Anything.
    Others,
}

/// Whether a word has one of these marks; see [`known`].
fn has_mark(letters: &str, marks: &[&str], word: &str) -> bool {
    let long = |word: &str| {
        word.strip_prefix("--")
            .map(|long| long.split('=').next().unwrap_or(long).to_owned())
    };
    let letters_of = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    letters_of.is_some_and(|rest| rest.contains(|letter| letters.contains(letter)))
        || marks.iter().any(|mark| {
            if let Some(text) = mark.strip_prefix('*') {
                word.contains(text)
            } else if let Some(full) = long(mark) {
                long(word).is_some_and(|name| {
                    !name.is_empty() && (full.starts_with(&name) || name.starts_with(&full))
                })
            } else if mark.starts_with(|c: char| c.is_ascii_alphanumeric())
                && !mark.ends_with([':', '='])
            {
                word == *mark
            } else {
                word.starts_with(mark)
            }
        })
}

/// Whether an interpreter runs code that is not in a file: from an option, from its input, or typed.
fn runs_code(letters: &str, marks: &[&str], is_python: bool, arguments: &[String]) -> bool {
    if arguments.iter().any(|word| word == "-") {
        return true;
    }
    let mut may_be_value = false;
    for (at, word) in arguments.iter().enumerate() {
        if marks.contains(&word.as_str()) {
            return true;
        }
        let (options, module) = match word.split_once('m') {
            Some((before, _)) if is_python && word.starts_with('-') && !word.starts_with("--") => {
                (before, true)
            }
            _ => (word.as_str(), false),
        };
        if has_mark(letters, marks, options) {
            return true;
        }
        if module {
            let name = word.split_once('m').map_or("", |(_, name)| name);
            let next = arguments.get(at + 1).map_or("", String::as_str);
            return lists(MODULES, if name.is_empty() { next } else { name });
        }
        if !(word.starts_with('-') || may_be_value) {
            return false;
        }
        may_be_value = word.starts_with('-');
    }
    // Python's `-v` is verbose: it still runs what it reads.
    !arguments.iter().any(|word| match word.as_str() {
        "-v" => !is_python,
        word => ["--check", "--version", "--help", "--test", "-V", "-h"].contains(&word),
    })
}

/// What a variable puts into a script is written like this.
pub(super) const OPEN: &str = "\0";

/// Whether a value of this variable may make a shell, a loader or a program run something.
pub(super) fn sets_program(variable: &str, value: &str) -> bool {
    let is = |names: &[&str]| names.iter().any(|name| variable.contains(name));
    let is_data = match variable {
        "IFS" => value == r"$'\n'" || !value.contains(|c: char| c.is_alphanumeric() || c == '$'),
        "PYTHONPATH" => true,
        _ if is(&["GIT_AUTHOR_", "GIT_COMMITTER_"]) => true,
        _ => {
            is(&["GIT_", "PYTHON", "PAGER", "EDITOR"])
                && !is(&["PATH", "DIR", "CONFIG"])
                && is_plain_value(value)
        }
    };
    is_evaluated(variable) && !is_data
}

fn is_plain_value(value: &str) -> bool {
    value.is_empty() || lists(PLAIN_VALUES, value)
}

/// Whether git's setting starts nothing.
fn is_plain_setting(setting: &str) -> bool {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.to_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| key.contains(part));
    let sections = ["advice.", "author.", "color.", "committer.", "user."];
    sections.iter().any(|section| key.starts_with(section))
        || (setting.contains('=')
            && is_plain_value(value)
            && !is(&[
                "alias", "dir", "file", "include", "kspath", ".path", "protocol",
            ]))
}

/// git's arguments from its subcommand on, and what its options before that run.
fn subcommand_of_git(mut arguments: &[String]) -> (&[String], Runs) {
    let mut runs = Runs::Itself;
    loop {
        arguments = match arguments {
            [option, setting, rest @ ..] if option == "-c" && is_plain_setting(setting) => rest,
            [option, _, rest @ ..] if option == "-C" => {
                runs = Runs::Later;
                rest
            }
            [option, rest @ ..] if ["--no-pager", "--version"].contains(&option.as_str()) => rest,
            [option, ..] if option.starts_with('-') => return (arguments, Runs::Others),
            [config, get, ..] if config == "config" && lists(READING, get) => {
                return (&[], runs);
            }
            // Its `-c` names a branch.
            [switch, ..] if switch == "switch" => return (&[], runs),
            _ => return (arguments, runs),
        }
    }
}

/// Whether docker runs anything but itself.
fn starts_container(arguments: &[String]) -> bool {
    let (compose, rest) = match arguments {
        [first, rest @ ..] if first == "compose" => (true, rest),
        _ => (false, arguments),
    };
    // docker's own `config` is not the one of `compose`.
    let is_plain = |first: &String| lists(RUNNING_NOTHING, first) && (compose || first != "config");
    !rest.first().is_some_and(is_plain)
}

/// Whether a shell or a loader evaluates this variable's value.
fn is_evaluated(variable: &str) -> bool {
    let mut names = EVALUATED.split_ascii_whitespace();
    names.any(
        |name| match (name.strip_suffix('*'), name.strip_prefix('*')) {
            (Some(begin), _) => variable.starts_with(begin),
            (_, Some(end)) => variable.ends_with(end),
            _ => variable == name,
        },
    )
}

/// Whether a built-in evaluates one of the names it is given.
fn evaluates_names(name: &str, arguments: &[String]) -> bool {
    let has_flag = |letters: &[char]| {
        arguments
            .iter()
            .any(|word| word.starts_with(['-', '+']) && word.contains(letters))
    };
    let has_subscript = || arguments.iter().any(|word| word.contains('['));
    match name {
        "printf" => {
            arguments
                .first()
                .is_some_and(|first| first.starts_with("-v"))
                && {
                    arguments.iter().take(2).any(|word| {
                        word.contains('[') || is_evaluated(word.trim_start_matches("-v"))
                    })
                }
        }
        "test" | "[" => has_flag(&['v', 'R']) && has_subscript(),
        "getopts" | "wait" => has_subscript(),
        _ => {
            let evaluates = match name {
                "mapfile" | "readarray" => has_flag(&['C']),
                "declare" | "local" | "typeset" => has_flag(&['i', 'n']),
                _ => false,
            };
            let is_special = |word: &String| match word.split_once('=') {
                Some((name, value)) => sets_program(name.trim_end_matches('+'), value),
                None => is_evaluated(word),
            };
            evaluates || has_subscript() || arguments.iter().any(is_special)
        }
    }
}

/// The row of a program: `gcc-12` and `x86_64-linux-gnu-gcc` are `gcc`.
fn row(table: &'static str, name: &str) -> Option<(&'static str, Vec<&'static str>)> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let last = plain.rsplit('-').next().unwrap_or(plain);
    let names = [name, plain, last];
    names.iter().find_map(|name| known::row(table, name))
}

/// Whether one of the options of a program that is not known here takes code or a command, by its name or its value.
fn takes_command(arguments: &[String]) -> bool {
    arguments.iter().enumerate().any(|(at, word)| {
        let Some(option) = word.strip_prefix('-') else {
            return false;
        };
        let name = option
            .trim_start_matches('-')
            .split('=')
            .next()
            .unwrap_or_default();
        let has_stem = !name.starts_with("no-") && name.split('-').any(|part| lists(STEMS, part));
        let is_code = |text: &str| text.contains([' ', '(', ';']);
        let is_code_behind = option.ends_with(['c', 'e', 'x'])
            && arguments.get(at + 1).is_some_and(|next| is_code(next));
        has_stem || (!option.starts_with('-') && (is_code_behind || is_code(option)))
    })
}

/// Whether the file of `-f` or of a long option is the input, which may be any script.
fn reads_script(arguments: &[String]) -> bool {
    let is_input = |file: &str| {
        let inputs = ["/dev/stdin", "/dev/fd/", "/proc/"];
        file == "-" || inputs.iter().any(|input| file.starts_with(input))
    };
    arguments.iter().enumerate().any(|(at, word)| {
        let value = match word.strip_prefix("--") {
            Some(long) => long.split_once('=').map(|(_, value)| value),
            None if word.starts_with('-') => {
                let value = word.split_once('f').map(|(_, value)| value);
                value.filter(|value| !value.is_empty())
            }
            None => return false,
        };
        let next = arguments.get(at + 1).map(String::as_str);
        let takes_next = word.starts_with("--") || word.ends_with('f');
        is_input(value.or(next.filter(|_| takes_next)).unwrap_or_default())
    })
}

/// Whether a program's arguments are data: it runs none of them, but by options that are known here.
pub(super) fn takes_data(program: &str) -> bool {
    let name = name(program);
    [DATA, NO_SUBCOMMANDS, NAMING, SETTING]
        .iter()
        .any(|list| lists(list, &name))
        || is_script(program)
}

/// Whether a program runs the words after its options.
pub(super) fn is_prefix(program: &str) -> bool {
    lists(PREFIXES, &name(program))
}

/// Whether it is a scripting language.
pub(super) fn is_language(program: &str) -> bool {
    let name = name(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    plain.ends_with("awk") || known::row(INTERPRETERS, plain).is_some()
}

/// Whether what a program runs depends on its options.
pub(super) fn depends_on_options(program: &str) -> bool {
    let name = name(program);
    row(RUNNING, &name).is_some()
        || row(INTERPRETERS, &name).is_some()
        || is_script(program)
        || lists(NAMING, &name)
        || lists(SETTING, &name)
}

/// Whether `sqlite3` does more than read and write the database: without a command it reads its input.
fn is_odd_sqlite(arguments: &[String]) -> bool {
    let mut texts = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .skip(1)
        .peekable();
    let is_odd = |text: &String| {
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('.'));
        lines.any(|line| {
            !lists(SQLITE, line.split(' ').next().unwrap_or(line)) || line.contains('|')
        })
    };
    texts.peek().is_none() || texts.any(is_odd)
}

/// Whether a program that runs others only prints its help or version, locates a program, or checks a script's syntax.
pub(super) fn runs_nothing(name: &str, arguments: &[String]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match texts.as_slice() {
        ["--help" | "--version"] => lists(WRAPPERS, name),
        ["-v" | "-V", ..] => name == "command",
        ["-n", script] => is_shell(name) && !script.starts_with(['-', '+']),
        _ => false,
    }
}

/// What the command may run that its first words do not show.
pub(super) fn runs(words: &[String]) -> Runs {
    let Some((program, arguments)) = words.split_first() else {
        return Runs::Others;
    };
    let name = name(program);
    let is_setting = lists(SETTING, &name);
    if is_setting || lists(NAMING, &name) {
        return match is_setting {
            _ if evaluates_names(&name, arguments) => Runs::Others,
            true => Runs::Later,
            false => Runs::Itself,
        };
    }
    // `exec` alone only redirects what later commands write.
    if lists(CONTEXT, &name) || (name == "exec" && arguments.is_empty()) {
        return Runs::Later;
    }
    if runs_nothing(&name, arguments) {
        return Runs::Itself;
    }
    if let Some((letters, marks)) = row(INTERPRETERS, &name) {
        let is_python = name.starts_with("py");
        return if runs_code(letters, &marks, is_python, arguments) {
            Runs::Others
        } else {
            Runs::Itself
        };
    }
    if let Some(is_plain) = is_plain_script(&name, arguments) {
        return if is_plain { Runs::Itself } else { Runs::Others };
    }
    let (arguments, before) = if name == "git" {
        subcommand_of_git(arguments)
    } else {
        (arguments, Runs::Itself)
    };
    let sets_command = |word: &String| {
        let value = word.split_once('=').map_or("", |(_, value)| value);
        value.contains(' ') && !value.starts_with('-')
    };
    let command = arguments.iter().find(|word| !word.starts_with('-'));
    let with_command = command
        .map(|command| format!("{name} {command}"))
        .unwrap_or_default();
    // The first word of `tar` may be its options without a dash.
    let old_options = arguments
        .first()
        .filter(|first| name.ends_with("tar") && !first.starts_with('-'));
    let old_options = old_options.map(|first| format!("-{first}"));
    let (own, of_command) = (row(RUNNING, &name), known::row(RUNNING, &with_command));
    let is_known = own.is_some() || takes_data(program);
    let mut words = arguments.iter().chain(&old_options);
    let is_marked = words.any(|word| {
        let mut rows = own.iter().chain(&of_command);
        rows.any(|(letters, marks)| has_mark(letters, marks, word))
    });
    let runs_others = before == Runs::Others
        || lists(WRAPPERS, &name)
        || is_marked
        || (name == "sqlite3" && is_odd_sqlite(arguments))
        || (lists(CONTAINERS, &name) && starts_container(arguments))
        || (name.ends_with("make")
            && (arguments.iter().any(sets_command) || reads_script(arguments)))
        || (!is_known && (takes_command(arguments) || reads_script(arguments)));
    if runs_others { Runs::Others } else { before }
}

/// Whether the command may run something its first words do not show, or change what later ones mean.
pub(super) fn runs_others(words: &[String]) -> bool {
    runs(words) != Runs::Itself
}

/// The words that name a subcommand, such as `npm test` or `npm run build`, whose arguments do not change what runs.
pub(super) fn subcommand(words: &[String]) -> Option<&[String]> {
    let is_name = |word: &String| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_:".contains(c))
    };
    let (program, verb) = (name(words.first()?), words.get(1)?);
    let count = match verb.as_str() {
        "run" if lists(SCRIPT_RUNNERS, &program) => 3,
        "run" | "exec" | "x" | "dlx" => return None,
        _ => 2,
    };
    let named = words.get(..count)?;
    let evaluates = |word: &String| {
        let name = name(word);
        lists(WRAPPERS, &name) || row(INTERPRETERS, &name).is_some() || is_script(&name)
    };
    let is_subcommand = named.iter().skip(1).all(is_name)
        && !lists(NO_SUBCOMMANDS, &program)
        && !lists(LAUNCHERS, &program)
        && !named.iter().any(evaluates)
        && !runs_others(words);
    is_subcommand.then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::shell::Dialect;
    use crate::text::shell::read;

    fn words(line: &str) -> Vec<String> {
        let line = read(line, Dialect::Posix).unwrap();
        line.plain().unwrap().remove(0)
    }

    #[test]
    fn programs_that_run_other_programs_are_recognized() {
        for line in [
            "sh -c x",
            "/bin/BASH x",
            "sudo rm x",
            "env -i timeout 5 nice touch x",
            "xargs rm",
            "eval x",
            "cd sub",
            "git -c core.pager=x log",
            "git ls-remote --upload-pack='touch x' .",
            "git --git-dir=sub status",
            "find . -name x -exec rm '{}' ';'",
            "find . -delete",
            "tar cf a b --checkpoint-action=exec=x",
            "python3.12 -c x",
            "python",
            "node --eval x",
            "perl -e x",
            "awk 'BEGIN { system(\"x\") }'",
            "awk -f x",
            "awk '{ print | x }' f",
            "awk 'BEGIN { _f = \"sys\" \"tem\"; @_f(\"x\") }'",
            "awk 'BEGIN { f = \"sys\" \"tem\"; @ f(\"x\") }'",
            "sed -n '1e x' f",
            "sed ':a;e x' f",
            "sed 'ba e x' f",
            "bash -n -c x",
            "exec x",
            "sed 's/a/b/e' f",
            "groovy -e 'x()'",
            "unknown --pre-command=x",
            "rg --pre x y",
            "cmd.exe",
        ] {
            assert!(runs_others(&words(line)), "{line}");
        }
        for line in [
            "cargo test",
            "git status",
            "git commit -m x",
            "find . -name x",
            "tar xf a",
            "python a.py",
            "python -m pytest",
            "git add configs",
            "npm test",
            "awk -F'|' '/x/ { print $2 }' f",
            "awk -F@ '{ print $2 \"@\" $1 }' f",
            "sed -n 1,20p f",
            "sed ':a;N;$!ba;s/x/y/;t end;d' f",
            "command -v rm",
            "sudo --version",
            "bash -n script",
            "git switch -c x",
            "sed -i.bak -e 's/[a-z]*\\/x/y/g; 3d' f",
            "unknown -x y --no-pager",
        ] {
            assert!(!runs_others(&words(line)), "{line}");
        }
    }
}
