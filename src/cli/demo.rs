//! `tandem demo`: the whole job without a key or network.
//!
//! A small real project with a failing test, and this process as the editor: it starts the real `tandem lsp`, speaks the
//! real protocol with it, offers a scripted model of its own, has unsaved text in its buffer, is asked for permission,
//! applies the edit to the buffer, saves it, and runs the test again.

mod editor;
mod project;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, ensure};

use super::{Failure, Outcome};
use crate::text::unified;
use editor::Editor;
use project::project;

/// Arguments of `tandem demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keep the project directory and print its path
    #[arg(long)]
    keep: bool,
}

const QUESTION: &str = "The test fails. Find out why and fix it.";

pub(super) async fn run(args: Args) -> Outcome {
    let folder = tempfile::Builder::new()
        .prefix("tandem-demo-")
        .tempdir()
        .context("making a temporary directory")?;
    let stage = Stage::new(folder.path());
    let played = play(&stage).await;
    if args.keep {
        let kept = folder.keep();
        Stage::say(&format!(
            "The project is in {}",
            kept.join("project").display()
        ))?;
    } else {
        folder.close().context("removing the temporary directory")?;
    }
    played.map(|()| ExitCode::SUCCESS).map_err(Failure::from)
}

async fn play(stage: &Stage) -> anyhow::Result<()> {
    let project = project();
    let folder = stage.folder.join("project");
    let code = folder.join(project.code_name);
    Stage::write(&code, &project.code)?;
    Stage::write(&folder.join(project.test_name), &project.test)?;
    stage.head("A project with a failing test")?;
    ensure!(
        !stage.test(project.run, &folder).await?,
        "the demo's test passes before anything has been changed"
    );

    let script = serde_json::from_str(project.script).context("the demo's script")?;
    let buffer = format!("{}{}", project.typed, project.code);
    let mut editor = Editor::start(stage, &folder, script).await?;
    editor.open(project.code_name, &buffer);

    stage.head("You ask, with unsaved text in the editor")?;
    Stage::say(&format!("> {QUESTION}\n"))?;
    editor.ask(QUESTION).await?;
    let after = editor.close().await?;

    stage.head("What changed in the buffer (the file on disk is unchanged)")?;
    ensure!(
        Stage::read(&code)? == project.code,
        "the file on disk was changed behind the editor's back"
    );
    stage.diff(&unified(&buffer, &after, 3))?;

    stage.head("You save, and run the test again")?;
    Stage::write(&code, &after)?;
    ensure!(
        stage.test(project.run, &folder).await?,
        "the test still fails"
    );
    Stage::say(
        "\nThat is tandem. To use it with a model of your own: `tandem login`, then `tandem init --editor vscode|neovim|helix`.",
    )
}

/// The demo's folder and terminal.
struct Stage {
    folder: PathBuf,
    colors: bool,
}

impl Stage {
    fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            colors: io::stdout().is_terminal(),
        }
    }

    fn head(&self, text: &str) -> anyhow::Result<()> {
        Self::say(&format!("\n{}", self.paint("1", &format!("── {text}"))))
    }

    fn say(line: &str) -> anyhow::Result<()> {
        Self::print(&format!("{line}\n"))
    }

    fn print(text: &str) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    fn diff(&self, diff: &str) -> anyhow::Result<()> {
        for line in diff.lines() {
            let color = match line.chars().next() {
                Some('+') => "32",
                Some('-') => "31",
                _ => "2",
            };
            Self::say(&self.paint(color, line))?;
        }
        Ok(())
    }

    fn paint(&self, color: &str, text: &str) -> String {
        if self.colors {
            format!("\x1b[{color}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the demo plays the person, whose files these are"
    )]
    fn write(path: &Path, text: &str) -> anyhow::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text).with_context(|| path.display().to_string())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the demo plays the person, whose files these are"
    )]
    fn read(path: &Path) -> anyhow::Result<String> {
        std::fs::read_to_string(path).with_context(|| path.display().to_string())
    }

    /// Runs the project's test, shows its output, and returns whether it passed.
    #[expect(
        clippy::disallowed_methods,
        reason = "the demo plays the person, who runs the test"
    )]
    async fn test(&self, run: &[&str], project: &Path) -> anyhow::Result<bool> {
        Self::say(&format!("$ {}", run.join(" ")))?;
        let (program, arguments) = run.split_first().context("the demo runs a test")?;
        let output = tokio::process::Command::new(program)
            .args(arguments)
            .current_dir(project)
            .stdin(Stdio::null())
            .output()
            .await
            .with_context(|| format!("running `{program}`"))?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let color = if line.starts_with("ok") { "32" } else { "31" };
            Self::say(&self.paint(color, line))?;
        }
        Ok(output.status.success())
    }
}
