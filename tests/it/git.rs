//! git as the tests run it: somebody commits, and nothing that this machine or its person has configured counts.

use std::path::Path;
use std::process::Command;

/// An identity, and no configuration but the repository's: without the first a clean machine cannot commit.
const SETTINGS: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "a"),
    ("GIT_AUTHOR_EMAIL", "a@b"),
    ("GIT_COMMITTER_NAME", "a"),
    ("GIT_COMMITTER_EMAIL", "a@b"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
];

/// git in a folder, with these arguments, to its good end.
pub fn git(folder: &Path, arguments: &[&str]) {
    succeed(started("git", folder).args(arguments));
}

/// A line of shell that uses git, to its good end.
pub fn shell(folder: &Path, line: &str) {
    succeed(started("sh", folder).args(["-ec", line]));
}

fn started(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).envs(SETTINGS);
    command
}

fn succeed(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}
