//! The environment line of the system prompt: the system, its shell, the date, git and the sandbox.
//!
//! Invariant: it is composed once, at the first prompt, and saved with the session, so that all requests begin with the
//! same bytes, even in another process, on another day or after a commit.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::process::Shell;
use crate::text::display::counted;
use crate::workspace::{Root, Workspace};

/// The branch and the number of files that differ from its last commit. A repository's own configuration can name programs
/// for nearly everything git does: these commands, unlike `git status`, start none of them.
const STATUS: &str = r#"
command -v git > /dev/null || exit 1
export GIT_NO_LAZY_FETCH=1
quiet() { git --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null -c protocol.allow=never "$@" 2> /dev/null; }
quiet symbolic-ref --short -q HEAD || echo '(detached)'
{
  quiet diff-files --name-only --ignore-submodules=all
  quiet diff-index --cached --name-only --ignore-submodules=all HEAD
  quiet ls-files --others --exclude-standard --directory
} | sort -u | wc -l
"#;
/// The longest branch name, in characters: others choose it.
const BRANCH: usize = 100;
/// How long the first prompt waits for git; after that, the line has only the branch.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Composes the line.
pub(super) async fn describe(shell: &Shell, workspace: &Workspace) -> String {
    let today = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let today = today.split('T').next().unwrap_or_default();
    let (git, shares_network) =
        tokio::join!(git(shell, workspace), shell.shares_network(workspace));
    let commands = if shares_network {
        "sandboxed, writes only in the workspace, no network unless `network` except a localhost they share"
    } else if shell.holds(workspace).await {
        "sandboxed, writes only in the workspace, no network or shared localhost unless `network`"
    } else {
        "not sandboxed, each requires the user's approval"
    };
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let program = shell.program();
    format!(
        "System: {system} {machine}; shell: {program}; today: {today}; {git}; commands: {commands}"
    )
}

/// The branch that is checked out, and how many files differ from its last commit.
async fn git(shell: &Shell, workspace: &Workspace) -> String {
    let Some(root) = workspace.roots().first() else {
        return "no git".to_owned();
    };
    let branch = branch(root);
    // In a linked worktree `.git` is a file.
    if branch.is_none() && root.open_file(Path::new(".git")).is_err() {
        return "no git".to_owned();
    }
    if let Ok(ran) = shell
        .run_once(workspace, STATUS.to_owned(), false, TIMEOUT)
        .await
        && ran.code == Some(0)
        && let Some(state) = state(&ran.output)
    {
        return state;
    }
    format!("git branch {}", branch.as_deref().unwrap_or("unknown"))
}

/// The branch in git's own file, read without starting a process.
fn branch(root: &Root) -> Option<String> {
    let mut head = String::new();
    root.open_file(Path::new(".git/HEAD"))
        .ok()?
        .take(1024)
        .read_to_string(&mut head)
        .ok()?;
    Some(
        head.trim()
            .strip_prefix("ref: refs/heads/")
            .unwrap_or("(detached)")
            .chars()
            .take(BRANCH)
            .collect(),
    )
}

/// The state of a repository, from what [`STATUS`] prints.
fn state(printed: &str) -> Option<String> {
    let (branch, files) = printed.trim().rsplit_once('\n')?;
    let branch: String = branch.trim().chars().take(BRANCH).collect();
    Some(match files.trim() {
        "0" => format!("git branch {branch}, no changed files"),
        number => {
            let files = counted(number.parse::<u64>().ok()?, "changed file");
            format!("git branch {branch}, {files}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::state;

    #[test]
    fn the_state_of_a_repository_is_its_branch_and_how_many_files_differ() {
        for (printed, expected) in [
            ("main\n2\n", Some("git branch main, 2 changed files")),
            (
                "fix/a.b\n       1\n",
                Some("git branch fix/a.b, 1 changed file"),
            ),
            (
                "(detached)\n0\n",
                Some("git branch (detached), no changed files"),
            ),
            ("main\nsort: not found\n", None),
            ("", None),
        ] {
            assert_eq!(state(printed).as_deref(), expected, "{printed}");
        }
    }
}
