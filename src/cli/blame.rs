//! `tandem blame`: which turn wrote each line of a file.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::sessions::saved;
use crate::config::Environment;
use crate::session::LineOrigin;
use crate::text::display;
use crate::workspace::{Root, content};

/// Arguments of `tandem blame`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON object per line of the file
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, environment: &Environment) -> anyhow::Result<()> {
    let sessions = saved(environment)?;
    let text = read(&args.file).with_context(|| format!("reading {}", args.file.display()))?;
    let origins = sessions.origins(&args.file, Arc::clone(&text)).await?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        print_json(&text, &origins, &mut out)?;
    } else {
        print(&text, &origins, &mut out)?;
    }
    Ok(out.flush()?)
}

fn read(file: &Path) -> anyhow::Result<Arc<str>> {
    let file = std::path::absolute(file)?;
    let folder = file.parent().context("it is a directory")?;
    let name = file.file_name().context("it is a directory")?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(
        &mut Root::open(folder)?.open_file(name.as_ref())?,
        &mut bytes,
    )?;
    let (text, _) = content::decode(bytes).context("it is not text")?;
    Ok(text.into())
}

fn print_json(text: &str, origins: &[Option<LineOrigin>], out: &mut dyn Write) -> io::Result<()> {
    for ((number, line), origin) in (1..).zip(text.lines()).zip(origins) {
        let mut object = json!({ "line": number, "text": line });
        if let Some(LineOrigin { wrote, is_edited }) = origin {
            object["origin"] = json!({
                "sessionId": wrote.session,
                "turn": wrote.turn,
                "prompt": wrote.prompt,
                "model": wrote.model,
                "by": wrote.by,
                "edited": is_edited,
            });
        }
        writeln!(out, "{object}")?;
    }
    Ok(())
}

/// Prints the lines, each after its session and turn, and below them what those were.
fn print(text: &str, origins: &[Option<LineOrigin>], out: &mut dyn Write) -> io::Result<()> {
    let label = |origin: &LineOrigin| {
        let LineOrigin { wrote, is_edited } = origin;
        let mark = if *is_edited { "*" } else { "" };
        format!("{} {}{mark}", wrote.session, wrote.turn)
    };
    let labels: Vec<String> = origins
        .iter()
        .map(|origin| origin.as_ref().map(label).unwrap_or_default())
        .collect();
    let width = labels.iter().map(String::len).max().unwrap_or_default();
    let digits = origins.len().to_string().len();
    for ((number, line), label) in (1..).zip(text.lines()).zip(&labels) {
        let line = display::escape_line(line);
        writeln!(out, "{label:width$}  {number:>digits$}  {line}")?;
    }
    let mut legend = BTreeMap::new();
    for origin in origins.iter().flatten() {
        let LineOrigin { wrote, .. } = origin;
        let whole = LineOrigin {
            is_edited: false,
            ..origin.clone()
        };
        let key = (&wrote.session, wrote.turn, &wrote.by);
        legend.insert(key, (label(&whole), wrote));
    }
    if legend.is_empty() {
        return writeln!(out, "no uncommitted line is known to come from a turn");
    }
    writeln!(out)?;
    for (label, wrote) in legend.values() {
        let [prompt, by, model] =
            [&wrote.prompt, &wrote.by, &wrote.model].map(|text| display::escape_line(text));
        writeln!(out, "{label:width$}  {prompt} ({by}, {model})")?;
    }
    if origins.iter().flatten().any(|origin| origin.is_edited) {
        writeln!(out, "* edited since")?;
    }
    Ok(())
}
