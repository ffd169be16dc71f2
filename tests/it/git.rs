//! git as the tests run it: with its own identity, ignoring the configuration of this machine and its user.

use std::path::Path;
use std::process::Command;

/// An identity, and no configuration except the repository's: without the former, a clean machine cannot commit.
const SETTINGS: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "a"),
    ("GIT_AUTHOR_EMAIL", "a@b"),
    ("GIT_COMMITTER_NAME", "a"),
    ("GIT_COMMITTER_EMAIL", "a@b"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
];

/// Runs git in a folder with these arguments; it must succeed.
pub fn git(folder: &Path, arguments: &[&str]) {
    succeed(started("git", folder).args(arguments));
}

/// Git's output for these arguments.
pub fn printed(folder: &Path, arguments: &[&str]) -> String {
    let done = started("git", folder).args(arguments).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

/// Runs a line of shell that uses git; it must succeed.
pub fn shell(folder: &Path, line: &str) {
    succeed(started("sh", folder).args(["-ec", line]));
}

/// What git reports about a folder's repository: its state, its history, and whether it is complete.
pub fn told(folder: &Path) -> String {
    let line = "git for-each-ref; git log --all --oneline --stat; git status --branch --porcelain; git stash list; \
        git fsck --full --strict --no-dangling; git config --list --local";
    match started("sh", folder)
        .args(["-c", line])
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
    {
        Ok(told) => String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned(),
        Err(error) => error.to_string(),
    }
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
