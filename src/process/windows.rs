//! Starting programs on Windows: found as a shell finds them, without a window, in a job object.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::Command;
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

/// A program in a job object: all it starts is in there too, and the system ends it with the last handle, which is ours.
pub(crate) type InJob = Box<dyn ChildWrapper>;

/// Starts a program in a job object of its own.
pub(crate) fn in_job(command: Command) -> io::Result<InJob> {
    let mut command = CommandWrap::from(command);
    command
        .wrap(CreationFlags(CREATE_NO_WINDOW))
        .wrap(KillOnDrop)
        .wrap(JobObject)
        .spawn()
}

/// The file that a program's name means: `npx` is `npx.cmd`. The name itself where nothing is found.
pub(crate) fn find_program(name: &str, variables: &BTreeMap<String, String>) -> PathBuf {
    let named = Path::new(name);
    if named.extension().is_some() {
        return named.to_owned();
    }
    let get = |variable: &str| variables.get(variable).map(String::as_str);
    let endings: Vec<&str> = get("PATHEXT")
        .unwrap_or(".COM;.EXE;.BAT;.CMD")
        .split(';')
        .collect();
    let folders: Vec<PathBuf> = if named.components().count() > 1 {
        vec![PathBuf::new()]
    } else {
        std::env::split_paths(get("PATH").unwrap_or_default())
            .filter(|folder| folder.is_absolute())
            .collect()
    };
    let files = folders.iter().flat_map(|folder| {
        endings
            .iter()
            .map(move |ending| folder.join(format!("{name}{ending}")))
    });
    files
        .into_iter()
        .find(|file| file.is_file())
        .unwrap_or_else(|| named.to_owned())
}
