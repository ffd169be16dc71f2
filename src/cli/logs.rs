//! The log file, with everything that servers write to standard error, which most editors hide; and `tandem logs`,
//! which shows it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;

use crate::config::{Environment, Settings};
use crate::text::display;
use crate::workspace::state::create_private;

/// A log file of this size replaces the old one, in bytes.
const FULL: u64 = 2 << 20;
/// More than enough for the lines shown, in bytes.
const TAIL: u64 = 256 << 10;

/// Arguments of `tandem logs`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print only the path of the log file
    #[arg(long)]
    path: bool,
    /// The number of lines
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 200)]
    lines: usize,
}

pub(super) fn run(
    args: &Args,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let file = file(&Settings::of(environment, &[]))
        .context("there is no state directory; set TANDEM_STATE_DIR")?;
    if args.path {
        return Ok(writeln!(out, "{}", file.display())?);
    }
    let text = match tail(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            writeln!(
                out,
                "nothing has been logged yet; `log = \"debug\"` in config.toml logs more"
            )?;
            return Ok(());
        }
        text => text.with_context(|| format!("reading {}", file.display()))?,
    };
    let lines: Vec<_> = text.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(args.lines)) {
        writeln!(out, "{}", display::escape_line(line))?;
    }
    Ok(())
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line of a truncated text is incomplete.
    Ok(if begin == 0 {
        text
    } else {
        text.split_once('\n')
            .map(|(_, rest)| rest.to_owned())
            .unwrap_or_default()
    })
}

/// The path of the log.
fn file(settings: &Settings) -> Option<PathBuf> {
    Some(settings.state_dir.as_ref()?.join("logs").join("tandem.log"))
}

/// The log file, opened with its first line. If it cannot be written, standard error has everything.
#[derive(Debug, Clone)]
pub(super) struct LogFile(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    Closed(PathBuf),
    Open(PathBuf, File),
    Absent,
}

impl LogFile {
    /// The log of this configuration.
    pub fn of(settings: &Settings) -> Self {
        Self(Arc::new(Mutex::new(
            file(settings).map_or(State::Absent, State::Closed),
        )))
    }

    /// Appends a line.
    pub fn add(&self, line: &[u8]) {
        let Ok(mut state) = self.0.lock() else { return };
        // Another process may have filled or rotated it.
        let path = match &*state {
            State::Closed(path) => Some(path.clone()),
            State::Open(path, file) => is_full(file.metadata()).then(|| path.clone()),
            State::Absent => None,
        };
        if let Some(path) = path {
            *state = open(&path).map_or(State::Absent, |file| State::Open(path, file));
        }
        if let State::Open(_, file) = &mut *state
            && file.write_all(line).is_err()
        {
            *state = State::Absent;
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(path);
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    create_private(folder)?;
    if is_full(path.metadata()) {
        std::fs::rename(path, path.with_extension("log.old"))?;
    }
    options.append(true).create(true).open(path)
}

fn is_full(file: io::Result<Metadata>) -> bool {
    file.is_ok_and(|file| file.len() >= FULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(environment: &Environment, lines: usize) -> String {
        let mut out = Vec::new();
        run(&Args { path: false, lines }, environment, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_log_is_rotated_and_its_last_lines_are_shown() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::made_up(home.path(), &[]);
        assert!(printed(&environment, 9).starts_with("nothing has been logged yet"));
        let settings = Settings::of(&environment, &[]);
        LogFile::of(&settings).add(b"one\ntwo\nthree\n");
        assert_eq!(printed(&environment, 2), "two\nthree\n");
        let path = file(&settings).unwrap();
        let fill = || {
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(FULL)
                .unwrap();
        };
        fill();
        let (one, other) = (LogFile::of(&settings), LogFile::of(&settings));
        one.add(b"new\n");
        assert_eq!(printed(&environment, 9), "new\n");
        assert_eq!(
            path.with_extension("log.old").metadata().unwrap().len(),
            FULL
        );
        other.add(b"of another process\n");
        fill();
        one.add(b"newer\n");
        other.add(b"newest\n");
        assert_eq!(
            printed(&environment, 9),
            "newer\nnewest\n",
            "also while they run"
        );
    }
}
