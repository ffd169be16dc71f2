//! Logging to standard error, which editors show in a log of their own, and to the log file. No line contains a key or
//! terminal control codes, and a panic is logged like any other line.

use std::io::{self, Write};

use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::logs::LogFile;
use crate::config::{Environment, LogLevel, Settings};
use crate::text::{Redactor, display};

/// Starts logging, at the level and into the directory that are configured; an invalid level is reported in the log itself.
pub fn log(environment: &Environment) {
    let settings = Settings::of(environment, &[]);
    // It learns what becomes a secret later.
    let secrets = settings.redactor();
    let (lines, file) = (secrets.clone(), LogFile::of(&settings));
    let log = file.clone();
    tracing_subscriber::fmt()
        .with_max_level(filter(settings.log))
        .with_writer(move || Clean {
            secrets: lines.clone(),
            to: Both(io::stderr(), log.clone()),
        })
        .with_ansi(false)
        .with_target(false)
        .init();
    std::panic::set_hook(Box::new(move |panic| {
        // Even if logging is off: it is the last message of a crashing process.
        let mut out = Clean {
            secrets: secrets.clone(),
            to: Both(io::stderr(), file.clone()),
        };
        let _nobody_reads = out.write_all(format!("tandem panicked: {panic}\n").as_bytes());
    }));
    for problem in settings
        .problems
        .iter()
        .filter(|problem| problem.key == "log")
    {
        tracing::event!(Level::WARN, "{problem}");
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Standard error and the log file.
struct Both(io::Stderr, LogFile);

impl Write for Both {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.1.add(line);
        self.0.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes complete, escaped lines. The logger writes one line at a time.
struct Clean<W> {
    secrets: Redactor,
    to: W,
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.to
            .write_all(display::escape(&self.secrets.redact(&text)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_contain_no_keys_or_control_characters() {
        let mut out = Clean {
            secrets: Redactor::new(["sk-0123456789"]),
            to: Vec::new(),
        };
        out.write_all(b"WARN Bearer sk-0123456789\x1b[2J\n")
            .unwrap();
        assert_eq!(
            String::from_utf8(out.to).unwrap(),
            "WARN Bearer [secret]\\u{1b}[2J\n"
        );
    }
}
