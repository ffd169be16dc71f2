//! The parts of a repository's own folder that make git run a program.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::workspace::{Root, native};

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
pub(super) const MARKS: [&str; 3] = ["HEAD", "objects", "refs"];

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
    dir.symlink_metadata(path).is_ok_and(|found| {
        // Reading a pipe would block.
        let own = found.is_file().then(|| dir.read_to_string(path).ok());
        own.flatten().is_none_or(|own| own.trim() != "../..")
    })
}

/// The repository that the folder `root` is a worktree of, if it is elsewhere.
pub(super) fn linked(root: &Root) -> Option<PathBuf> {
    let own = worktree(root)?;
    let folder = Dir::open_ambient_dir(&own, cap_std::ambient_authority()).ok()?;
    native::canonical(&own.join(folder.read_to_string("commondir").ok()?.trim())).ok()
}

/// The folder that the file `.git` of `root` names, whatever that is.
pub(crate) fn git_folder(root: &Root) -> Option<PathBuf> {
    let named = root.dir().read_to_string(".git").ok()?;
    native::canonical(&root.real().join(named.strip_prefix("gitdir:")?.trim())).ok()
}

/// The folder in the repository that belongs to the worktree `root`, with its index. The repository has to list the
/// worktree too, so that a file in the workspace cannot name an arbitrary folder.
pub(crate) fn worktree(root: &Root) -> Option<PathBuf> {
    let own = git_folder(root)?;
    let folder = Dir::open_ambient_dir(&own, cap_std::ambient_authority()).ok()?;
    let back = folder.read_to_string("gitdir").ok()?;
    (native::canonical(Path::new(back.trim())).ok()? == root.real().join(".git")).then_some(own)
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
