//! A snapshot on the disk, as a log of change sets from nothing to the last look: what a command that was interrupted
//! together with tandem is compared with.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Seen;
use super::folder::{Known, Listing};
use crate::changes::change_set::{ChangeSet, Entry};

/// Begins the log with `first`.
pub(super) fn begin(path: &Path, first: &ChangeSet) -> io::Result<()> {
    write(File::create(path)?, std::slice::from_ref(first))
}

/// Goes on with the log.
pub(super) fn append(path: &Path, changes: &[ChangeSet]) -> io::Result<()> {
    write(OpenOptions::new().append(true).open(path)?, changes)
}

fn write(file: File, changes: &[ChangeSet]) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    for one in changes {
        serde_json::to_writer(&mut out, one)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// What was seen when the log was last written.
pub(super) fn load(path: &Path) -> io::Result<Seen> {
    let mut seen = Seen::default();
    for line in BufReader::new(File::open(path)?).lines() {
        let ChangeSet { files, git } = serde_json::from_str(&line?)?;
        for change in files {
            set(&mut seen.folders, &change.path, change.after);
        }
        seen.git.extend(
            git.into_iter()
                .map(|change| (change.path, Known::unstamped(change.after))),
        );
    }
    Ok(seen)
}

fn set(folders: &mut HashMap<PathBuf, Listing>, path: &Path, entry: Entry) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let listing = Arc::make_mut(&mut folders.entry(folder.to_owned()).or_default().entries);
    let index = listing.binary_search_by(|(other, _)| other.as_os_str().cmp(name));
    match (index, entry) {
        (Ok(index), Entry::Absent) => _ = listing.remove(index),
        (Ok(index), entry) => listing
            .splice(index..=index, [known(name, entry)])
            .for_each(drop),
        (Err(_), Entry::Absent) => {}
        (Err(index), entry) => listing.insert(index, known(name, entry)),
    }
}

fn known(name: &OsStr, entry: Entry) -> (std::ffi::OsString, Known) {
    (name.to_owned(), Known::unstamped(entry))
}
