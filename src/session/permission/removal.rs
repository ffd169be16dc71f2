//! Command lines that remove or move the workspace itself, however they reach or spell it: a folder that is gone takes
//! what undo needs with it, so they require approval in every mode.
//!
//! Like [`super::emptying`], no security boundary.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::emptying::{has_candidate, is_flag};
use crate::text::lists;
use crate::text::shell::{Word, program_name as name};
use crate::tools::CommandLine;

/// The most folders outside the current one in which the names in a line are looked up.
const FOLDERS: usize = 100;
/// How many words one with braces may become.
const SPELLINGS: usize = 64;
/// How a shell's line may write the current folder, and the home directory.
const HERE: [&str; 4] = ["$PWD", "${PWD}", "$(pwd)", "`pwd`"];
const HOME: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// Whether the line removes or moves one of `roots`, or a parent folder of one.
pub(super) fn removes(line: &CommandLine, roots: &[PathBuf]) -> bool {
    let folders = folders(line, roots);
    has_candidate(&line.command, &mut |words| {
        // Most words of a long text are no such program.
        let may_wipe = words.first().is_some_and(|it| may_wipe(&it.written()));
        may_wipe && {
            let words: Vec<String> = words.iter().map(Word::written).collect();
            wipes(&words, &folders, roots)
        }
    })
}

/// The folders in which a command of the line may run: the current one, and those outside that a word names. From a
/// folder above, a command may reach any other one above.
fn folders(line: &CommandLine, roots: &[PathBuf]) -> BTreeSet<PathBuf> {
    let (mut folders, mut goes_up) = (BTreeSet::new(), false);
    let mut look = |words: &[Word]| {
        goes_up |= goes_anywhere(words);
        let word = words.first().and_then(Word::text).unwrap_or_default();
        // `--chdir=DIR` or `-CDIR`
        let path = word.rsplit('=').next().unwrap_or_default();
        let path = path.strip_prefix("-C").unwrap_or(path);
        let folder = tidy(&line.cwd.join(path));
        if !folder.starts_with(&line.cwd) {
            folders.insert(folder);
        }
        false
    };
    has_candidate(&line.command, &mut look);
    let inside = roots
        .iter()
        .map(PathBuf::as_path)
        .chain([line.cwd.as_path()]);
    let above: BTreeSet<PathBuf> = inside
        .flat_map(|folder| folder.ancestors().skip(1).map(Path::to_owned))
        .collect();
    // A `/` alone is a sign in many texts.
    let mut named = folders.iter().filter(|it| it.parent().is_some());
    if goes_up || folders.len() > FOLDERS || named.any(|it| above.contains(it)) {
        folders = folders.into_iter().take(FOLDERS).chain(above).collect();
    }
    folders.insert(line.cwd.clone());
    folders
}

/// Whether the command changes to a folder that the line does not name.
fn goes_anywhere(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let is_option = |word: &str| word.starts_with('-') && word != "-";
    let mut folders = arguments.iter().filter(|word| !is_option(&word.written()));
    match (program.written().as_str(), folders.next()) {
        ("cd" | "chdir", None) => true,
        ("cd" | "chdir" | "pushd" | "-C", Some(folder)) => folder.text().is_none(),
        _ => false,
    }
}

/// Whether [`wipes`] knows the program.
fn may_wipe(program: &str) -> bool {
    lists("find mv rimraf rm srm trash trash-put", &name(program))
}

/// The words that a shell makes of one with braces, up to about [`SPELLINGS`].
fn spellings(word: &str) -> Vec<String> {
    let (mut done, mut left) = (Vec::new(), vec![word.to_owned()]);
    while let Some(word) = left.pop() {
        let mut ends = word.match_indices('}');
        let braces = ends.find_map(|(end, _)| {
            let (before, inside) = word.get(..end)?.rsplit_once('{')?;
            let is_list = inside.contains(',');
            is_list.then_some((before, inside, word.get(end + 1..)?))
        });
        match braces {
            Some((before, inside, after)) if done.len() + left.len() < SPELLINGS => left.extend(
                inside
                    .split(',')
                    .take(SPELLINGS + 1)
                    .map(|part| format!("{before}{part}{after}")),
            ),
            _ => done.push(word),
        }
    }
    done
}

/// What follows one of these in a path.
fn below<'a>(path: &'a str, folders: &[&str]) -> Option<&'a str> {
    let mut rests = folders.iter().filter_map(|it| path.strip_prefix(it));
    let rest = rests.find(|rest| rest.is_empty() || rest.starts_with('/'))?;
    Some(rest.trim_start_matches('/'))
}

/// Whether the command, run in one of the folders, removes or moves one of `roots`, or a parent folder of one.
fn wipes(words: &[String], folders: &BTreeSet<PathBuf>, roots: &[PathBuf]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let is_recursive = |word: &String| word == "--recursive" || is_flag(word, &['r', 'R']);
    let is_root = |path: &Path| roots.iter().any(|root| root.starts_with(path));
    let is_git = |path: &Path| path.components().any(|part| part.as_os_str() == ".git");
    let names_one = |word: &str, is_wiped: &dyn Fn(&Path) -> bool| {
        if let Some(rest) = below(word, &HOME) {
            let mut above = roots.iter().flat_map(|root| root.ancestors());
            return above.any(|path| path.ends_with(rest) && is_wiped(path))
                || is_wiped(Path::new(rest));
        }
        // In a folder further down, each further `..` only leads back.
        let path = Path::new(below(word, &HERE).unwrap_or(word));
        let mut meant = std::iter::successors(Some(path), |path| path.strip_prefix("..").ok());
        meant.any(|path| folders.iter().any(|it| is_wiped(&tidy(&it.join(path)))))
    };
    let names = |word: &str, is_wiped: &dyn Fn(&Path) -> bool| {
        let spellings = spellings(word);
        spellings.len() > SPELLINGS || spellings.iter().any(|it| names_one(it, is_wiped))
    };
    match name(program).as_str() {
        program @ ("rm" | "srm" | "rimraf" | "trash" | "trash-put") => {
            (!program.ends_with("rm") || arguments.iter().any(is_recursive))
                && arguments
                    .iter()
                    .any(|word| names(word, &|path| is_root(path) || is_git(path)))
        }
        "find" => {
            // With a test before it, it removes no more than undo restores.
            let is_option = |word: &String| {
                ["-H", "-L", "-P", "-depth"].contains(&word.as_str()) || !word.starts_with('-')
            };
            let at = arguments.iter().take_while(|it| is_option(it)).count();
            let (places, actions) = arguments.split_at(at);
            let removes = match actions {
                [action, program, ..] if action.starts_with("-exec") => may_wipe(program),
                [action, ..] => action == "-delete",
                [] => false,
            };
            // It leaves `.` itself: in a workspace, that only empties it.
            let stays = |word: &str, path: &Path| {
                word.trim_end_matches('/') == "." && roots.iter().any(|root| root == path)
            };
            let removed =
                |word: &str, path: &Path| is_git(path) || is_root(path) && !stays(word, path);
            removes
                && places
                    .iter()
                    .any(|word| names(word, &|path| removed(word, path)))
        }
        "mv" => {
            // The target is the last one, unless an option names it.
            let is_option = |word: &String| word.starts_with("--t") || is_flag(word, &['t']);
            let option = arguments.iter().position(is_option);
            let is_separate = |word: &String| word.ends_with('t') || word == "--target-directory";
            let target = match option {
                Some(at) => at + usize::from(arguments.get(at).is_some_and(is_separate)),
                None => arguments.len().saturating_sub(1),
            };
            let mut arguments = arguments.iter().enumerate();
            arguments.any(|(at, word)| at != target && names(word, &is_root))
        }
        _ => false,
    }
}

/// Resolves `.` and `..` by name alone.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = tidy.pop(),
            part => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::shell::{Dialect, read};

    #[test]
    fn removing_the_workspace_is_recognized() {
        let check = |line: &str, expected: bool| {
            let words = read(line, Dialect::Posix)
                .unwrap()
                .plain()
                .unwrap()
                .remove(0);
            let roots = ["/home/me/work".into(), "/srv/other".into()];
            let folders = BTreeSet::from(["/home/me/work/sub".into()]);
            assert_eq!(wipes(&words, &folders, &roots), expected, "{line}");
        };
        check("rm -rf /", true);
        check("/bin/rm -fr ..", true);
        check("rm --recursive ../../work/", true);
        check("rm -R /srv", true);
        check("mv /home/me/work /tmp/x", true);
        check("mv -t /tmp ../../work", true);
        check("mv -ft/tmp ../../work", true);
        check("mv ../../work --target-directory /tmp", true);
        check("mv a b ..", false);
        check("mv -vt .. a b", false);
        check("mv --target-directory=.. a b", false);
        check("mv", false);
        check("rimraf ..", true);
        check("trash-put dist", false);
        // It may be meant in a folder further down, but not in one further up.
        check("rm -r ../../../work", true);
        check("rm -r ../work", false);
        check("rm -rf target", false);
        check("rm -rf .", false);
        check("rm /", false);
        check("ls -r /", false);
    }
}
