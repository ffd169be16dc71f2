//! `run_command`: runs a shell command in the sandbox, to its end or in the background.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    CommandLine, Exit, FileDiff, Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool,
};
use crate::domain::Styled;
use crate::process::{Changed, Dialect, Ended, Job, Reach, StandIn, StoppedBy, TakenOver};
use crate::text::display::escape_line;
use crate::text::shell::{self, Command, End};
use crate::workspace::{OnDisk, Unsaved, WorkspacePath};

/// How long a background job is watched before the model continues.
const WATCHED: Duration = Duration::from_secs(1);
/// The maximum size of a result, in bytes.
const MOST: usize = 64_000;
/// Why a command cannot run in a copy of the workspace.
const NO_SANDBOX: &str = "commands cannot run in a /try turn here: that requires bubblewrap, which is not installed or does \
    not work (see `tandem doctor`). Edit files only, and tell the user which command to run after they apply";
/// How long to wait for new output of a job.
const WAIT: Duration = Duration::from_secs(10);

pub(super) struct RunCommand {
    dialect: Dialect,
}

impl RunCommand {
    /// For commands in this language.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

/// The descriptions on Windows, where commands are not sandboxed.
const POWER_SHELL: &str = "Run a PowerShell command, with the user's approval. It has no terminal and no stdin. Child processes are killed when it exits.";
const CMD: &str = "Run a command line in cmd.exe (one line; there is no PowerShell and no bash), with the user's approval. It has no terminal and no stdin. Child processes are killed when it exits.";
const BASH_ON_WINDOWS: &str = "Run a command in Git's bash on Windows, with the user's approval. It has no terminal and no stdin. Child processes are killed when it exits.";

/// What to run.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The command line. With `job`: `read` (default) waits for new output, `stop` kills it.
    #[serde(default)]
    command: String,
    cwd: Option<String>,
    /// Seconds until it is killed, 120 unless configured.
    timeout_s: Option<u64>,
    /// Requires the user's approval.
    #[serde(default)]
    network: bool,
    /// Run in the background (servers, watchers) and return a job number at once.
    #[serde(default)]
    background: bool,
    job: Option<u32>,
}

/// An action on a job.
#[derive(Clone, Copy)]
enum Action {
    Read,
    Stop,
}

impl TypedTool for RunCommand {
    type Arguments = Arguments;
    const NAME: &'static str = "run_command";
    const DESCRIPTION: &'static str = "Run a shell command in a sandbox: writes only inside the workspace, no network \
        unless `network`, no terminal or stdin. Child processes are killed when it exits.";
    const KIND: ToolKind = ToolKind::Execute;
    const EXAMPLE: &'static str = r#"{"command": "cargo test", "timeout_s": 300}"#;

    fn described(&self) -> &str {
        match self.dialect {
            Dialect::Posix if cfg!(windows) => BASH_ON_WINDOWS,
            Dialect::Posix => Self::DESCRIPTION,
            Dialect::PowerShell => POWER_SHELL,
            Dialect::Cmd => CMD,
        }
    }

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        if let Some(id) = arguments.job {
            job(context, id)?;
            let title = match action(&arguments.command)? {
                Action::Read => format!("Read the output of job {id}"),
                Action::Stop => format!("Stop job {id}"),
            };
            return Ok(Preview {
                title,
                follows_up: true,
                ..Preview::default()
            });
        }
        let (line, note) = command_line(context, &arguments).await?;
        let mut title = format!("Run `{}`", escape_line(&line.command));
        if !line.sandboxed {
            title.push_str(" (without a sandbox)");
        }
        if line.network {
            title.push_str(" (with the network)");
        }
        let (saved, ignored) = hidden(context, reads_unsaved(context, &arguments).await).await;
        if !saved.is_empty() {
            title = format!("{title} (saves {} first)", names(&saved));
        }
        if !ignored.is_empty() {
            title = format!("{title} (ignores unsaved changes in {})", names(&ignored));
        }
        let targets = vec![folder(context, &arguments)?.real()];
        Ok(Preview {
            title,
            targets,
            command: Some(Box::new(line)),
            note,
            ..Preview::default()
        })
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let Some(id) = arguments.job else {
            return start(context, &arguments).await;
        };
        let job = job(context, id)?;
        let wait = arguments.timeout_s.map_or(WAIT, Duration::from_secs);
        look_after(context, &job, action(&arguments.command)?, wait).await
    }
}

fn job(context: &ToolContext, id: u32) -> Result<Arc<Job>, ToolError> {
    context
        .shell
        .job(id)
        .ok_or_else(|| ToolError(format!("unknown job {id}")))
}

fn action(command: &str) -> Result<Action, ToolError> {
    match command.trim() {
        "" | "read" => Ok(Action::Read),
        "stop" => Ok(Action::Stop),
        _ => Err(ToolError(
            "with `job`, `command` is `read` or `stop`".to_owned(),
        )),
    }
}

/// The folder it runs in.
fn folder(context: &ToolContext, arguments: &Arguments) -> Result<WorkspacePath, ToolError> {
    context.resolve(arguments.cwd.as_deref().unwrap_or("."))
}

/// The command line, and what to know about undoing its changes.
async fn command_line(
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<(CommandLine, Option<String>), ToolError> {
    if arguments.command.trim().is_empty() {
        return Err(ToolError("the command is empty".to_owned()));
    }
    if arguments.command.contains('\0') {
        return Err(ToolError("the command contains a NUL character".to_owned()));
    }
    let cwd = folder(context, arguments)?;
    if !cwd.is_folder() {
        return Err(ToolError(format!(
            "the directory {} does not exist",
            cwd.display()
        )));
    }
    if context.workspace.is_copy() && !context.shell.shows_unsaved(&context.workspace).await {
        return Err(ToolError(NO_SANDBOX.to_owned()));
    }
    let Reach { undo, note, .. } = context.shell.reach(&context.workspace).await;
    let line = CommandLine {
        command: arguments.command.clone(),
        dialect: context.shell.dialect(),
        cwd: cwd.absolute(),
        sandboxed: context.shell.holds(&context.workspace).await,
        network: arguments.network,
        localhost: context.shell.shares_localhost(&context.workspace).await,
        undo,
    };
    Ok((line, note))
}

/// Whether the command reads unsaved text. A background job does not: it has to see what is saved later.
async fn reads_unsaved(context: &ToolContext, arguments: &Arguments) -> bool {
    !arguments.background && context.shell.shows_unsaved(&context.workspace).await
}

/// The unsaved texts that a command does not see: all of them, or where it `reads_unsaved` text those without a file. First
/// those that the editor saves, then those that stay unsaved, because undo would not cover changes to their files.
async fn hidden(context: &ToolContext, reads_unsaved: bool) -> (Vec<Unsaved>, Vec<Unsaved>) {
    let mut unsaved = context.workspace.unsaved_texts().await;
    unsaved.retain(|unsaved| !reads_unsaved || !unsaved.path.real().is_file());
    if unsaved.is_empty() || !context.workspace.editor().saves() {
        return (Vec::new(), unsaved);
    }
    let Reach { left_out, .. } = context.shell.reach(&context.workspace).await;
    let is_left_out = |unsaved: &Unsaved| {
        let path = unsaved.path.real();
        left_out.iter().any(|left_out| path.starts_with(left_out))
    };
    unsaved
        .into_iter()
        .partition(|unsaved| !is_left_out(unsaved))
}

async fn start(context: &ToolContext, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let (line, _) = command_line(context, arguments).await?;
    context.check_command(&line)?;
    if arguments.background {
        context.shell.make_room()?;
    }
    let reads_unsaved = reads_unsaved(context, arguments).await;
    let (saved, ignored) = hidden(context, reads_unsaved).await;
    let mut unsaved = context.workspace.save(saved).await;
    unsaved.extend(ignored);
    let old = names(&unsaved);
    if reads_unsaved {
        unsaved = context.workspace.unsaved_texts().await;
    }
    // A job changes files as long as it runs.
    unsaved.retain(|_| !arguments.background);
    let mut report = String::new();
    if !old.is_empty() {
        report = format!(
            "[unsaved in the editor, so the command reads the older version on disk: {old}]\n",
        );
    }
    let live = (!arguments.background).then(|| context.live.clone());
    let job = context
        .shell
        .start(&context.workspace, &line, live, unsaved)
        .await?;
    if arguments.background {
        let head = format!("{report}[job {}]\n", job.id);
        return in_background(context, &job, head, WATCHED).await;
    }
    context.shell.wait_in(&context.call_id, &job);
    // Some send 0 where they mean no other limit.
    let limit = arguments
        .timeout_s
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
        .or(context.shell.timeout())
        .unwrap_or(Duration::MAX);
    let end = tokio::select! {
        ended = job.ended() => Ok(ended),
        () = tokio::time::sleep(limit) => Err(format!(
            "killed after {} s; pass a larger `timeout_s`, or `background` for a command that does not end on its own",
            limit.as_secs()
        )),
        () = context.cancel.cancelled() => Err("cancelled".to_owned()),
        () = job.background.cancelled() => {
            let head = format!("{report}[the user moved it to the background as job {}]\n", job.id);
            return in_background(context, &job, head, Duration::ZERO).await;
        }
    };
    let (ended, how) = match &end {
        Ok(ended) => (Arc::clone(ended), exit(ended)),
        Err(why) => (job.stop().await, format!("[{why}]\n")),
    };
    let mut output = report_changes(context, &job, Some(&ended), false).await;
    let (said, styles) = job.output.take_styled(context.room(MOST));
    let said = line_end(said);
    output.styles = shifted(styles, report.len());
    let hint = end
        .as_ref()
        .map_or("", |ended| hint(&line, &said, ended.code() == Some(0)));
    let busy = busy(&job, &said).unwrap_or_default();
    output.content = report + &said + &how + hint + &busy + &output.content;
    output.is_error = end.is_err();
    Ok(output)
}

fn names<'a>(unsaved: impl IntoIterator<Item = &'a Unsaved>) -> String {
    let names = unsaved.into_iter().map(|it| it.path.display());
    names.collect::<Vec<_>>().join(", ")
}

/// Moves a command to the background; its call ends with the output so far, below `head`.
async fn in_background(
    context: &ToolContext,
    job: &Arc<Job>,
    head: String,
    wait: Duration,
) -> Result<ToolOutput, ToolError> {
    context.shell.keep(job);
    let mut output = look_after(context, job, Action::Read, wait).await?;
    output.styles = shifted(output.styles, head.len());
    output.content = head + &output.content;
    output.job = Some(job.id);
    Ok(output)
}

/// The styles of a text after something has been put before it.
fn shifted(styles: Vec<Styled>, by: usize) -> Vec<Styled> {
    styles
        .into_iter()
        .map(|it| Styled {
            range: it.range.start + by..it.range.end + by,
            ..it
        })
        .collect()
}

/// Error messages of name resolution without network access.
const NO_NETWORK: &[&str] = &[
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "getaddrinfo",
    "EAI_AGAIN",
    "ENOTFOUND",
    "dns error",
    "no such host",
    "failed to lookup address",
    "Network is unreachable",
    "ENETUNREACH",
    "Could not resolve 'http",
    "Temporary failure resolving",
    "nodename nor servname",
    "unable to resolve host",
];

/// Advice after a command that failed because of the sandbox.
fn hint(line: &CommandLine, said: &str, is_well: bool) -> &'static str {
    if !is_well && !line.network && NO_NETWORK.iter().any(|words| said.contains(words)) {
        return "[no network access; call again with network: true, which requires the user's approval]\n";
    }
    let said = said.to_ascii_lowercase();
    let tried = ["connect", "listen", "socket"];
    if !is_well && !line.network && !line.localhost && tried.iter().any(|word| said.contains(word))
    {
        return "[commands share no localhost here; run a server and what connects to it with network: true, which requires the user's approval]\n";
    }
    if is_well && leaves_running(line) {
        return "[the processes it left running were killed; call with background: true to keep a server running]\n";
    }
    ""
}

/// The errors of programs that try to replace a file whose unsaved text is mounted in its place.
const BUSY: [&str; 3] = ["Device or resource busy", "Resource busy", "EBUSY"];

/// How to change a file with unsaved text that a command could not replace.
fn busy(job: &Job, said: &str) -> Option<String> {
    let names: Vec<_> = job
        .stand_ins
        .iter()
        .filter(|file| file.is_fixed())
        .map(StandIn::display)
        .collect();
    let is_busy = BUSY.iter().any(|words| said.contains(words)) && !names.is_empty();
    is_busy.then(|| {
        format!(
            "[{} has unsaved text in the editor: a command can write to it but not replace, move or remove it; use \
             edit_file, or ask the user to save it]\n",
            names.join(", ")
        )
    })
}

/// Whether a command starts something in the background that it does not wait for.
fn leaves_running(line: &CommandLine) -> bool {
    let Ok(line) = shell::read(&line.command, line.dialect) else {
        return false;
    };
    let commands = line.all();
    let begins = |command: &&Command| command.end == End::Background;
    let waits = |command: &&Command| {
        let first = command.words.first();
        first.is_some_and(|word| word.written() == "wait")
    };
    commands.iter().any(begins) && !commands.iter().any(waits)
}

/// Reads a job's new output, or stops it.
async fn look_after(
    context: &ToolContext,
    job: &Arc<Job>,
    action: Action,
    wait: Duration,
) -> Result<ToolOutput, ToolError> {
    let ended = match action {
        Action::Stop => {
            job.stopped_by(StoppedBy::Model);
            Some(job.stop().await)
        }
        Action::Read => {
            tokio::select! {
                () = job.output.news() => {}
                () = tokio::time::sleep(wait) => {}
                () = context.cancel.cancelled() => return Err(ToolError("cancelled".to_owned())),
            }
            // Its output ends a moment before it does.
            if job.output.has_ended() || job.has_ended() {
                Some(job.ended().await)
            } else {
                None
            }
        }
    };
    let (said, styles) = job.output.take_styled(context.room(MOST));
    let said = line_end(said);
    let mut output = report_changes(context, job, ended.as_deref(), true).await;
    output.styles = styles;
    let how = ended.map_or_else(
        || format!("[job {} is running]\n", job.id),
        |ended| exit(&ended),
    );
    output.content = said + &how + &output.content;
    Ok(output)
}

/// A command's changes, with the notes about them.
async fn report_changes(
    context: &ToolContext,
    job: &Job,
    ended: Option<&Ended>,
    is_job: bool,
) -> ToolOutput {
    if ended.is_some() {
        job.report();
    }
    let mut taken_over = Vec::new();
    for stand_in in &job.stand_ins {
        taken_over.push(stand_in.take_over(&context.workspace).await);
    }
    // Taking over restores the files that the command replaced, so the look at its end no longer counts.
    let is_as_ended = ended.is_some() && taken_over.is_empty();
    let changed = context
        .shell
        .changed(&context.workspace, is_job, is_as_ended)
        .await;
    let Changed {
        changes,
        mut diffs,
        mut notes,
        told,
        is_unstored: _,
    } = changed;
    context.workspace.refresh(on_disk(context, &diffs)).await;
    for TakenOver { diff, note } in taken_over {
        diffs.extend(diff);
        notes.extend(note);
    }
    let put_right = ended.map(|ended| ended.notes.clone()).unwrap_or_default();
    let notices: Vec<String> = put_right.into_iter().chain(told).collect();
    let content = in_brackets(&notices) + &in_brackets(&notes);
    let exit = ended.map(|ended| Exit {
        code: ended.code(),
        ran_ms: ended.ran.as_millis().try_into().unwrap_or(u64::MAX),
    });
    ToolOutput {
        content,
        diffs,
        changes: Some(changes),
        exit,
        notices,
        ..ToolOutput::default()
    }
}

/// The texts that were changed on the disk.
fn on_disk(context: &ToolContext, diffs: &[FileDiff]) -> Vec<OnDisk> {
    let file = |diff: &FileDiff| {
        let path = context.workspace.resolve_path(&diff.path).ok()?;
        Some(OnDisk {
            path,
            old: diff.old_text.clone(),
            new: Arc::clone(&diff.new_text),
        })
    };
    // A file that is gone has an empty text.
    diffs
        .iter()
        .filter_map(file)
        .filter(|file| file.path.exists())
        .collect()
}

/// How a command ended.
fn exit(ended: &Ended) -> String {
    let how = ended.code().map_or_else(
        || "exit status unknown".to_owned(),
        |code| format!("exit code {code}"),
    );
    format!("[{how}, {:.1} s]\n", ended.ran.as_secs_f64())
}

fn in_brackets(notes: &[String]) -> String {
    notes
        .iter()
        .fold(String::new(), |all, note| all + "[" + note + "]\n")
}

fn line_end(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
