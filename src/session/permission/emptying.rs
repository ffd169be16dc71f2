//! Command lines that may remove or overwrite much: since undo may not cover that, they require approval in every mode.
//!
//! A line that is understood is judged by its commands; in any other, programs that remove files are searched for by
//! name.
//!
//! This is no security boundary (the sandbox is), so a program's own code is not analyzed: only the names of what
//! removes files in scripting languages are.

use super::command::Words;
use super::programs::name;

/// Programs that remove content.
const REMOVERS: [&str; 12] =
    ["dd", "mv", "rename", "rimraf", "rm", "shred", "srm", "trash", "trash-put", "truncate", "unlink", "wipe"];
/// Scripting languages.
const LANGUAGES: [&str; 16] = [
    "awk", "bun", "deno", "gawk", "julia", "lua", "luajit", "mawk", "node", "nodejs", "perl", "php", "pypy", "python",
    "ruby", "tclsh",
];
/// What removes content in them.
const CALLS: [&str; 12] = [
    "Dir.delete",
    "File.delete",
    "FileUtils.rm",
    "fs.rm",
    "os.remove",
    "remove_tree",
    "rm_rf",
    "rmSync",
    "rmdirSync",
    "rmtree",
    "truncate",
    "unlink",
];
/// Programs that run their arguments as a command.
const PREFIXES: [&str; 17] = [
    "builtin", "busybox", "chronic", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "time", "timeout", "toybox", "unbuffer",
];
/// Separators of commands in a line that is not understood.
const SEPARATORS: [char; 9] = [';', '|', '&', '\n', '(', ')', '{', '}', '`'];

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
    if calls_remover(line) {
        return true;
    }
    match commands {
        Some(commands) => commands.iter().any(|words| uncovered.is_emptied_by(words)),
        None => overwrites_in_a_loop(line) || line.split(SEPARATORS).any(|part| uncovered.is_emptied_in(part)),
    }
}

/// Whether a script in the line may remove files.
fn calls_remover(line: &str) -> bool {
    let is_blank = |character: char| character.is_whitespace() || SEPARATORS.contains(&character);
    CALLS.iter().any(|call| line.contains(call)) && line.split(is_blank).any(is_language)
}

/// Whether a loop redirects to a name that depends on it.
fn overwrites_in_a_loop(line: &str) -> bool {
    let is_loop = line.split([' ', ';', '\n', '\t']).any(|word| matches!(word, "for" | "while" | "until"));
    let parts: Vec<&str> = line.split('>').collect();
    // What follows `>>` is only added to.
    let overwrites = |pair: &[&str]| matches!(pair, [before, target] if !before.is_empty() && is_variable(target));
    is_loop && parts.windows(2).any(overwrites)
}

/// Whether the text begins with a variable that is a word of its own.
fn is_variable(text: &str) -> bool {
    let text = text.trim_start_matches('|').trim_start().trim_start_matches('"');
    let Some(text) = text.strip_prefix('$') else { return false };
    let end = text.find([' ', ';', '"', '\n', ')', '&', '|']).unwrap_or(text.len());
    let name = text.get(..end).unwrap_or_default().trim_matches(['{', '}']);
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

impl Uncovered {
    /// Whether a part of a line that is not understood affects it, wherever a command begins there.
    fn is_emptied_in(self, part: &str) -> bool {
        let word = |word: &str| word.trim_matches(['"', '\'', ',', '[', ']']).to_owned();
        let words: Vec<String> = part.split_whitespace().map(word).filter(|word| !word.is_empty()).collect();
        self.is_emptied_after(&words, 0)
    }

    /// Whether a command that begins at one of the words from `first` on affects it.
    fn is_emptied_after(self, words: &[String], first: usize) -> bool {
        let mut starts = (first..words.len()).filter_map(|start| words.get(start..));
        starts.any(|words| self.is_emptied_by(words) || self.is_open(words))
    }

    /// Whether a simple command affects more than it names.
    fn is_emptied_by(self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        let has = |wanted: &str| arguments.iter().any(|word| word == wanted);
        let starts = |wanted: &str| arguments.iter().any(|word| word.starts_with(wanted));
        let runs_remover = || arguments.iter().any(|word| is_shell(word) || REMOVERS.contains(&name(word).as_str()));
        match name(program).as_str() {
            "find" => has("-delete") || (starts("-exec") && runs_remover()) || (starts("-ok") && runs_remover()),
            "git" => self.is_emptied_by_git(arguments),
            "rm" | "rimraf" | "trash" => arguments.iter().any(|word| matches!(word.trim_end_matches('/'), "." | "..")),
            "fd" | "fdfind" | "parallel" | "xargs" => runs_remover(),
            "rsync" => starts("--del") || starts("--remove-source"),
            "tar" | "bsdtar" | "gtar" => has("--remove-files"),
            "zip" => has("--move") || arguments.iter().any(|word| is_flag(word, &['m'])),
            // Text passed to another shell is a line of its own.
            program if is_shell(program) || program == "eval" => {
                arguments.iter().any(|text| may_empty(text, super::command::parse(text).ok().as_deref(), self))
            }
            program if is_language(program) => arguments.iter().any(|text| may_empty(text, None, self)),
            program => PREFIXES.contains(&program) && self.is_emptied_after(words, 1),
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
        let removes_ignored = (has("clean") && flagged(&['x', 'X']))
            || (has("stash") && (has("--all") || flagged(&['a'])))
            || (has("worktree") && has("remove"));
        // An alias that the line itself defines is a line of its own.
        let alias = |word: &String| word.split_once("=!").is_some_and(|(_, line)| may_empty(line, None, self));
        removes_objects || (self == Self::Ignored && removes_ignored) || arguments.iter().any(alias)
    }

    /// Whether the names given to a removing command depend on the shell.
    fn is_open(self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        let any = |marks: &[char]| arguments.iter().any(|word| word.contains(marks) && self.may_match(word));
        let is_all = || arguments.iter().any(|word| is_everything(word) && self.may_match(word));
        // The names came from a substitution, which is another part of the line.
        let is_bare = || arguments.iter().all(|word| word.starts_with('-'));
        match name(program).as_str() {
            "rm" | "rimraf" | "srm" | "trash" | "trash-put" => {
                let is_recursive = arguments.iter().any(|word| word == "--recursive" || is_flag(word, &['r', 'R']));
                (is_recursive && (is_bare() || any(&['*', '?', '[', '$']))) || is_all()
            }
            "mv" => is_bare() || any(&['*']) || arguments.iter().any(|word| word == "$"),
            "dd" | "shred" | "truncate" | "unlink" | "wipe" => any(&['*', '$']),
            "tee" => is_all(),
            "cp" => arguments.iter().any(|word| word == "/dev/null") && any(&['*', '$']),
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
    word.contains("**") || matches!(last, "*" | ".*" | "*.*" | "?*" | ".[!.]*" | ".??*" | ".[^.]*")
}

fn is_shell(program: &str) -> bool {
    matches!(name(program).as_str(), "sh" | "ash" | "bash" | "dash" | "ksh" | "zsh" | "fish")
}

fn is_language(program: &str) -> bool {
    let name = name(program);
    LANGUAGES.contains(&name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.'))
}

/// Whether a word is a group of one-letter options that contains one of these.
fn is_flag(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

#[cfg(test)]
mod tests {
    use super::super::command::parse;
    use super::*;

    fn check(line: &str, uncovered: Uncovered, expected: bool) {
        let commands = parse(line).ok();
        assert_eq!(may_empty(line, commands.as_deref(), uncovered), expected, "{line}: {uncovered:?}");
    }

    /// Lines that can reach ignored files, and git's objects.
    const EVERYTHING: [&str; 66] = [
        "rm -rf \"$PWD\"",
        "rm -rf $(pwd)",
        "rm -rf `pwd`",
        "rm -rf ${PWD:?}/",
        "rm -rf .",
        "rm -fr ./",
        "rm -rf -- .",
        "rm -rf .* *",
        "rm -rf {.,}*",
        "rm -rf .[!.]*",
        "cd sub && rm -rf ..",
        "sudo rm -rf .",
        "env -i timeout 5 rm -rf .",
        "nice -n 19 rm -rf .",
        "busybox rm -rf .",
        "command rm -rf .",
        "for d in $(ls -A); do rm -rf \"$d\"; done",
        "ls -A | while read -r d; do rm -rf \"$d\"; done",
        "ls -A | xargs rm -rf",
        "find . -delete",
        "find . -type f -delete",
        "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +",
        "find . -type f -exec rm {} +",
        "find . -name x -exec rm '{}' ';'",
        "find . -type f -ok rm {} ';'",
        "find . -type f -execdir unlink {} ';'",
        "find . -type f -exec shred -u {} ';'",
        "find . -type f -exec sh -c '> \"$1\"' _ {} ';'",
        "find . -type f -exec truncate -s 0 {} +",
        "find . -print0 | xargs -0 rm",
        "find . -print0 | xargs -0 -n1 unlink",
        "find . -type f | parallel rm",
        "fd -H . -x rm",
        "bash -c 'rm -rf .'",
        "bash -lc 'cd . && find . -delete'",
        "sh -c \"find . -delete\"",
        "sh -c 'rm -rf \"$0\"' .",
        "eval 'rm -rf .'",
        "mv $(ls -A) /tmp",
        "mv `ls -A` /tmp",
        "mv .* * /tmp",
        "truncate -s 0 $(find . -type f)",
        "for f in $(find . -type f); do truncate -s 0 $f; done",
        "for f in $(find . -type f); do shred -u $f; done",
        "for f in $(find . -type f); do dd if=/dev/zero of=$f count=1; done",
        "for f in $(find . -type f); do > \"$f\"; done",
        "for f in $(find . -type f); do : >$f; done",
        "find . -type f | while read f; do cat /dev/null > \"$f\"; done",
        "for f in $(find . -type f); do cp /dev/null $f; done",
        "python3 -c 'import shutil; shutil.rmtree(\".\")'",
        "python3 -c \"import os; [os.remove(f) for f in os.listdir()]\"",
        "python3 -c \"import os; os.system('rm -rf .')\"",
        "python -c \"import subprocess; subprocess.run(['rm', '-rf', '.'])\"",
        "python3 - <<'EOF'\nimport shutil\nshutil.rmtree('.')\nEOF",
        "node -e \"require('fs').rmSync('.', {recursive: true})\"",
        "perl -e 'unlink glob \"*\"'",
        "perl -MFile::Path -e 'remove_tree(\".\")'",
        "ruby -rfileutils -e 'FileUtils.rm_rf(\".\")'",
        "php -r 'array_map(\"unlink\", glob(\"*\"));'",
        "rsync -a --delete /tmp/empty/ .",
        "rsync -a --remove-source-files . /tmp/away",
        "tar czf /tmp/all.tgz --remove-files .",
        "zip -qmr /tmp/all.zip .",
        "git gc --prune=now",
        "git prune",
        "git -c alias.x='!rm -rf .' x",
    ];

    /// Lines that can reach ignored files but no hidden ones.
    const VISIBLE: [&str; 20] = [
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf */",
        "rm *",
        "rm -f sub/*",
        "rm -rf src/**",
        "bash -c 'rm -rf *'",
        "bash -c 'rm -rf ./*'",
        "eval 'rm -rf *'",
        "mv * /tmp",
        "mv ./* ../away",
        "truncate -s 0 *",
        "shred -u *",
        "sed -i d *",
        "cp /dev/null *",
        "true | tee *",
        "git clean -fdx",
        "git clean -xfd && make",
        "git clean -ffdX",
        "git stash --all",
    ];

    /// Lines whose changes undo covers, or that name what they change.
    const COVERED: [&str; 42] = [
        "rm -rf target",
        "rm -rf node_modules dist",
        "rm a b",
        "rm -f *.o",
        "mv a b",
        "git clean -fd",
        "git checkout -- .",
        "git checkout -f other",
        "git switch -f other",
        "git switch --discard-changes other",
        "git restore .",
        "git restore --staged --worktree .",
        "git reset --hard",
        "git reset --hard HEAD~3",
        "git stash",
        "git stash -u",
        "git stash drop",
        "git rm -rf src",
        "git mv a b",
        "git gc",
        "git commit -am 'prune the tree'",
        "git grep rmtree",
        "grep -rn unlink src",
        "rg 'shutil.rmtree' tests",
        "find . -name '*.rs'",
        "find . -type d -empty -exec rmdir {} +",
        "find src -name '*.rs' -exec sed -i s/a/b/ {} +",
        "cargo test 2>&1 | tail -5",
        "cargo clean",
        "echo $HOME",
        "npm run build > log",
        "for f in *; do wc -l $f; done",
        "for f in *; do grep -c x $f >> counts; done",
        "for i in 1 2; do ./run $i > out/$i.log; done",
        "bash -c 'make test'",
        "truncate -s 0 log",
        "sed s/a/b/ x > t && mv t x",
        "sed -i s/a/b/ src/*.rs",
        "python3 -m pytest",
        "python3 -c 'print(1)'",
        "timeout 60 cargo test",
        "tar xf a.tar",
    ];

    #[test]
    fn commands_that_may_empty_the_workspace_are_recognized() {
        for line in EVERYTHING {
            check(line, Uncovered::Ignored, true);
            check(line, Uncovered::Objects, true);
        }
        for line in VISIBLE {
            check(line, Uncovered::Ignored, true);
            check(line, Uncovered::Objects, false);
        }
        for line in COVERED {
            check(line, Uncovered::Ignored, false);
            check(line, Uncovered::Objects, false);
        }
    }
}
