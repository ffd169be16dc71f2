//! What git has of a file at the last commit.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::time::timeout;

use crate::domain::find_program;

/// How long git may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The bytes of a file in the last commit; `None` if it is not in one, or nobody can tell. A repository's own configuration
/// can name programs for nearly everything git does: this starts none of them and reaches no network.
pub async fn committed(file: &Path) -> Option<Vec<u8>> {
    let (folder, name) = (file.parent()?, file.file_name()?.to_str()?);
    let git = tokio::process::Command::new(find_program("git")?)
        .args(["--no-optional-locks", "-c", "core.fsmonitor=false"])
        .args(["-c", "core.hooksPath=/dev/null", "cat-file", "blob"])
        .arg(format!("HEAD:./{name}"))
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(TIMEOUT, git).await.ok()?.ok()?;
    output.status.success().then_some(output.stdout)
}
