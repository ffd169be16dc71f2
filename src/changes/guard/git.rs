//! The parts of a repository's own folder that make git run a program.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::workspace::path::open_here;
use crate::workspace::{Root, native};

/// The longest of git's one-line files that is read, in bytes.
const LONGEST: u64 = 64 << 10;

/// The parts of a repository that name programs to run.
pub(super) const PARTS: [&str; 5] = [
    "config",
    OF_WORKTREE,
    "hooks",
    "info/attributes",
    SETTINGS_ELSEWHERE,
];

/// What names the folder whose settings git reads instead: only a worktree has it.
pub(super) const SETTINGS_ELSEWHERE: &str = "commondir";

/// The settings of one worktree, its main one for one.
pub(super) const OF_WORKTREE: &str = "config.worktree";

/// The folder of a repository with those of its worktrees.
pub(super) const WORKTREES: &str = "worktrees";

/// Entries that every repository's folder has.
const MARKS: [&str; 3] = ["HEAD", "objects", "refs"];

/// Settings that run nothing, as `git init` and `git clone` write them.
const SETTINGS: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "bare",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
    ),
    ("remote", &["fetch", "url"]),
    ("branch", &["merge", "rebase", "remote"]),
    ("user", &["email", "name"]),
    ("init", &["defaultbranch"]),
    ("extensions", &["objectformat", "refstorage"]),
];

/// Whether the file that replaces a worktree's settings names anything but its repository.
pub(super) fn names_another(dir: &Dir, path: &Path) -> bool {
    let is_there = dir.symlink_metadata(path).is_ok();
    is_there && text(dir, path).is_none_or(|own| own.trim() != "../..")
}

/// The repository that the folder `root` is a worktree of, if it is elsewhere. It has to be one, and to have the worktree's
/// folder in it, so that files in the workspace cannot name an arbitrary folder.
pub(super) fn linked(root: &Root) -> Option<PathBuf> {
    let own = worktree(root)?;
    let common = text(&open(&own)?, SETTINGS_ELSEWHERE)?;
    let common = native::canonical(&own.join(common.trim())).ok()?;
    let is_in = own.parent() == Some(&*common.join(WORKTREES));
    (is_in && has_marks(&open(&common)?, Path::new(""))).then_some(common)
}

/// The folder that the file `.git` of `root` names, whatever that is.
pub(crate) fn git_folder(root: &Root) -> Option<PathBuf> {
    let named = text(root.dir(), ".git")?;
    native::canonical(&root.real().join(named.strip_prefix("gitdir:")?.trim())).ok()
}

/// The folder in the repository that belongs to the worktree `root`, with its index. The repository has to list the
/// worktree too.
pub(crate) fn worktree(root: &Root) -> Option<PathBuf> {
    let own = git_folder(root)?;
    // With `worktree.useRelativePaths`, it is relative to the folder it is in.
    let back = own.join(text(&open(&own)?, "gitdir")?.trim());
    (native::canonical(&back).ok()? == root.real().join(".git")).then_some(own)
}

/// Whether a folder looks like a repository.
pub(super) fn has_marks(dir: &Dir, folder: &Path) -> bool {
    MARKS
        .iter()
        .all(|mark| dir.symlink_metadata(folder.join(mark)).is_ok())
}

fn open(folder: &Path) -> Option<Dir> {
    Dir::open_ambient_dir(folder, cap_std::ambient_authority()).ok()
}

/// What a file of git's says. A command may put a pipe in its place, whose opening would block, or a file of any size.
fn text(dir: &Dir, path: impl AsRef<Path>) -> Option<String> {
    let file = open_here(dir, path.as_ref().as_os_str()).ok()?;
    let mut text = String::new();
    let is_file = file.metadata().ok()?.is_file();
    is_file.then(|| file.take(LONGEST).read_to_string(&mut text).ok())??;
    Some(text)
}

/// Whether this part of a repository makes git run nothing.
pub(super) fn is_inert(path: &Path, content: &[u8]) -> bool {
    if path.file_name().is_some_and(|name| name == "config") {
        return std::str::from_utf8(content).is_ok_and(is_inert_config);
    }
    let is_sample = path
        .extension()
        .is_some_and(|extension| extension == "sample");
    is_sample && path.components().any(|part| part.as_os_str() == "hooks")
}

/// Strict: anything that is not clearly one of the [`SETTINGS`] counts as dangerous.
fn is_inert_config(text: &str) -> bool {
    let mut keys: &[&str] = &[];
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .all(|line| {
            if let Some(section) = line.strip_prefix('[') {
                // A setting may stand on the line of its section.
                let section = section.strip_suffix(']');
                let Some(section) = section.filter(|section| !section.contains(']')) else {
                    return false;
                };
                let name = section
                    .split([' ', '"', '.'])
                    .next()
                    .unwrap_or_default()
                    .to_ascii_lowercase();
                keys = SETTINGS
                    .iter()
                    .find(|(section, _)| *section == name)
                    .map_or(&[], |(_, keys)| keys);
                return !keys.is_empty();
            }
            let Some((key, value)) = line.split_once('=') else {
                return false;
            };
            let known = keys.contains(&key.trim().to_ascii_lowercase().as_str());
            // `ext::` URLs are commands; a backslash continues on the next line.
            known && !value.contains('\\') && !value.contains("::")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_init_and_clone_write_is_harmless() {
        let check = |config: &str, expected: bool| {
            assert_eq!(is_inert_config(config), expected, "{config}");
        };
        check(
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            true,
        );
        check(
            "[remote \"origin\"]\n\turl = https://x/y\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            true,
        );
        check("[core]\n\tfsmonitor = touch x\n", false);
        check("[core]fsmonitor = touch x\n", false);
        check("[remote \"origin\"]uploadpack = touch x #]\n", false);
        check("[remote.origin]uploadpack = touch x ;]\n", false);
        check("[remote \"origin\"]\n\turl = ext::sh -c id\n", false);
        check("[alias]\n\tco = !touch x\n", false);
        check("[user]\n\tname = a\\\n\tb\n", false);
        check("[include]\n\tpath = /tmp/x\n", false);
        check("stray = 1\n", false);
    }
}
