//! What an evaluation plays: a folder of files, a prompt, and a script that says whether the task was done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use tandem::config::{Environment, Mode};
use tandem::process::{Ran, Shell};
use tandem::workspace::Workspace;

/// The twelve tasks of `--suite smoke`.
const SMOKE: &str = include_str!("smoke.json");
/// So long a script may run.
const SCRIPT: Duration = Duration::from_mins(2);

/// One task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Its name.
    pub id: String,
    /// The files of the folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// A folder that is copied instead.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// What the editor has open, with text that is not saved.
    #[serde(default)]
    pub unsaved: BTreeMap<String, String>,
    /// Run in the folder before. What it notes for the check is in `../outcome`, which the model does not see.
    #[serde(default)]
    pub before: String,
    /// What the person asks.
    pub prompt: String,
    /// The mode.
    #[serde(default = "auto")]
    pub mode: Mode,
    /// Run in the folder afterwards, sandboxed; exit code 0 means done. `$ANSWER` is a file with the last answer, `$BUFFERS` a
    /// folder with the open texts.
    pub check: String,
    /// Programs without which it cannot be played.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether a second prompt with what the check printed may follow a failure.
    #[serde(skip)]
    pub may_retry: bool,
}

fn auto() -> Mode {
    Mode::Auto
}

/// The tasks of `smoke`.
pub(super) fn smoke() -> anyhow::Result<Vec<Task>> {
    serde_json::from_str(SMOKE).context("the tasks of the smoke suite")
}

/// The exercises in a folder laid out as Exercism's tracks are (`…/practice/NAME/.meta/config.json`), as in
/// `Aider-AI/polyglot-benchmark`.
pub(super) fn exercises(folder: &Path) -> anyhow::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.join(".meta/config.json").is_file() {
            tasks.extend(exercise(&folder)?);
            continue;
        }
        for entry in entries(&folder)? {
            if entry.is_dir() {
                folders.push(entry);
            }
        }
    }
    tasks.sort_by(|one, other| one.id.cmp(&other.id));
    ensure!(
        !tasks.is_empty(),
        "no exercise in {}: none has .meta/config.json",
        folder.display()
    );
    Ok(tasks)
}

/// How an exercise is tested, by how its test files end, and the program that is needed for it.
const TESTS: [(&str, &str, &str); 5] = [
    (
        "_test.py",
        "python3",
        "python3 -m unittest discover -p '*_test.py'",
    ),
    (".rs", "cargo", "cargo test -- --include-ignored"),
    ("_test.go", "go", "go test ./..."),
    (
        ".spec.js",
        "npm",
        "sed -i 's/xtest/test/' *.spec.js && npm install --silent && npm test",
    ),
    (
        "Test.java",
        "java",
        "sed -i 's/@Disabled(.*)//' src/test/java/*.java && ./gradlew test",
    ),
];

#[derive(Deserialize)]
struct Configuration {
    files: Named,
}

#[derive(Deserialize)]
struct Named {
    solution: Vec<String>,
    test: Vec<String>,
}

/// `None` for a language that cannot be tested.
fn exercise(folder: &Path) -> anyhow::Result<Option<Task>> {
    let Configuration { files } = serde_json::from_str(&read(&folder.join(".meta/config.json"))?)
        .with_context(|| folder.display().to_string())?;
    let test =
        |(end, _, _): &&(&str, &str, &str)| files.test.iter().any(|file| file.ends_with(*end));
    let Some((_, program, check)) = TESTS.iter().find(test) else {
        return Ok(None);
    };
    let parts: Vec<_> = folder
        .components()
        .rev()
        .take(4)
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    let words = [
        "introduction.md",
        "instructions.md",
        "instructions.append.md",
    ];
    let words: Vec<_> = words
        .iter()
        .filter_map(|name| read(&folder.join(".docs").join(name)).ok())
        .collect();
    let prompt = format!(
        "{}\n\nImplement this in {}. Do not change the tests.",
        words.join("\n\n"),
        files.solution.join(", ")
    );
    Ok(Some(Task {
        id: parts
            .iter()
            .rev()
            .map(|part| &**part)
            .filter(|part| !matches!(*part, "exercises" | "practice"))
            .collect::<Vec<_>>()
            .join("/"),
        files: BTreeMap::new(),
        folder: Some(folder.to_owned()),
        unsaved: BTreeMap::new(),
        before: "rm -rf .meta".to_owned(),
        prompt,
        mode: Mode::Auto,
        check: (*check).to_owned(),
        needs: vec![(*program).to_owned()],
        may_retry: true,
    }))
}

impl Task {
    /// The first program it needs that is not here.
    pub async fn lacks(&self, environment: &Environment) -> Option<&str> {
        for program in &self.needs {
            let look = format!("command -v {program}");
            let found = script(&look, Path::new("."), environment).await;
            if !found.is_ok_and(|output| output.status.success()) {
                return Some(program);
            }
        }
        None
    }

    /// Lays the folder out.
    pub async fn lay_out(&self, folder: &Path, environment: &Environment) -> anyhow::Result<()> {
        // The first file of some tasks is written by their script.
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        if let Some(from) = &self.folder {
            copy(from, folder)?;
        }
        for (name, text) in &self.files {
            write(&folder.join(name), text)?;
        }
        let output = script(&self.before, folder, environment).await?;
        ensure!(
            output.status.success(),
            "{}: preparing it failed: {}",
            self.id,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Whether it is done, and what the check printed. The check runs the model's code, so it is sandboxed like a command.
    pub async fn check(
        &self,
        shell: &Shell,
        seen: &Workspace,
        answer: &Path,
        buffers: &Path,
    ) -> anyhow::Result<Ran> {
        let set = |name: &str, path: &Path| format!("export {name}={}\n", quoted(path));
        let check = set("ANSWER", answer) + &set("BUFFERS", buffers) + &self.check;
        // Exercises fetch what they depend on.
        let network = self.folder.is_some();
        Ok(shell.run_once(seen, check, network, SCRIPT).await?)
    }
}

/// A path as a word of a POSIX shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Runs a script with the variables of a command: keys are none of a model's code.
#[expect(
    clippy::disallowed_methods,
    reason = "a maintainer's own script, which runs before the model does anything"
)]
async fn script(text: &str, folder: &Path, environment: &Environment) -> anyhow::Result<Output> {
    let run = tokio::process::Command::new("sh")
        .args(["-c", text])
        .env_clear()
        .envs(environment.for_commands())
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(SCRIPT, run)
        .await
        .context("a script took too long")?
        .context("running `sh`")
}

#[expect(
    clippy::disallowed_methods,
    reason = "an evaluation makes its own folders"
)]
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let place = || path.display().to_string();
    std::fs::create_dir_all(path.parent().with_context(place)?).with_context(place)?;
    std::fs::write(path, text).with_context(place)
}

#[expect(
    clippy::disallowed_methods,
    reason = "an evaluation reads its own folders"
)]
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let list = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(list
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in entries(from)? {
        let Some(name) = entry.file_name() else {
            continue;
        };
        let to = to.join(name);
        if entry.is_dir() {
            copy(&entry, &to)?;
        } else {
            std::fs::copy(&entry, to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smoke_suite_has_twelve_tasks_in_four_languages() {
        let tasks = smoke().unwrap();
        assert_eq!(tasks.len(), 12);
        let mut ids: Vec<_> = tasks.iter().map(|task| &task.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 12);
        let needs = |program: &str| {
            tasks
                .iter()
                .any(|task| task.needs.iter().any(|need| need == program))
        };
        assert!(needs("python3") && needs("node") && needs("rustc"));
    }
}
