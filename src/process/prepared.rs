//! All that is done before a command starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::changed::Guarded;
use super::sandbox::{Confined, Invocation, Places, Scratch};
use super::{Shared, StandIn, Surroundings};
use crate::changes::guard::{lent, with_repositories};
use crate::domain::CommandLine;
use crate::workspace::written::Written;
use crate::workspace::{Unsaved, Workspace};

/// Variables that every command gets: there is no terminal, no input and no pager.
const FIXED: [(&str, &str); 9] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GCM_INTERACTIVE", "never"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Where programs look for libraries first.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// A command ready to start.
pub(super) struct Prepared {
    /// The command line.
    pub shown: String,
    pub invocation: Invocation,
    pub variables: BTreeMap<String, OsString>,
    pub cwd: PathBuf,
    pub guard: Option<Guarded>,
    pub workspace: Workspace,
    /// The unsaved texts it reads.
    pub stand_ins: Vec<StandIn>,
    /// The file that says when it was last known to run.
    pub alive: PathBuf,
    /// The folder for its output.
    pub scratch: Option<PathBuf>,
    /// Keeps the folder as long as the command runs.
    pub _scratch: Option<Arc<Scratch>>,
}

impl Shared {
    /// All disk access before a command starts. If the `unsaved` text `is_fixed`, the command can write to its files
    /// but not replace them. `written` is what people and tools have written since before the workspace was looked at,
    /// if it was. Blocks.
    pub fn prepare(
        &self,
        workspace: &Workspace,
        line: &CommandLine,
        (unsaved, is_fixed): (Vec<Unsaved>, bool),
        written: Option<Written>,
    ) -> io::Result<Prepared> {
        let surroundings = &self.surroundings;
        let folder = workspace
            .resolve_path(&line.cwd)
            .map_err(io::Error::other)?;
        let (cwd, place) = (folder.real(), folder.place());
        let argv = surroundings.shell().argv(&line.command)?;
        let mut variables = variables(surroundings);
        let Some(sandbox) = self.sandbox.get().filter(|_| line.sandboxed) else {
            return self.prepare_plainly(workspace, line, argv, variables, place, unsaved);
        };
        let argv = with_libraries(argv, &mut variables);
        let scratch = self.scratch()?;
        let roots = with_repositories(workspace.roots());
        let guarded = self.guarded(
            workspace,
            &roots,
            (sandbox.pins(), unsaved.is_empty()),
            written,
        );
        let mut pins = guarded.guard.pins();
        pins.read_only.extend(self.links());
        let (lent, sockets) = lent(&roots);
        pins.sockets.extend(sockets);
        let home = surroundings.home();
        let write: Vec<PathBuf> = roots.iter().map(|root| root.real().to_owned()).collect();
        let folder = scratch.unsaved();
        let (seen, unseen): (Vec<_>, Vec<_>) = unsaved
            .into_iter()
            .partition(|unsaved| sandbox.shows_unsaved() && unsaved.path.real().is_file());
        let stand_ins = seen
            .into_iter()
            .map(|unsaved| StandIn::new(workspace, unsaved, &folder, is_fixed));
        let mut stand_ins: Vec<_> = stand_ins.collect::<io::Result<_>>()?;
        let confined = Confined {
            roots: &roots,
            pins: &pins,
            lent: &lent,
            hidden: &surroundings.hidden,
            home: home.as_deref(),
            places: &Places::find(
                &surroundings.variables,
                home.as_deref(),
                &write,
                line.network,
            ),
            stand_ins: &stand_ins,
            scratch: &scratch,
            cwd: &cwd,
            network: line.network,
            session: if line.localhost && !line.network {
                sandbox.network()?
            } else {
                None
            },
        };
        let invocation = sandbox
            .invocation(&confined, surroundings, argv)?
            .marked(scratch.ended());
        stand_ins.extend(on_disk(workspace, unseen));
        let own = sandbox.variables(&scratch).into_iter();
        variables.extend(own.map(|(name, value)| (name.to_owned(), value.into_os_string())));
        let folder = scratch.folder();
        Ok(Prepared {
            shown: line.command.clone(),
            invocation,
            variables,
            cwd: place,
            guard: Some(guarded),
            workspace: workspace.clone(),
            stand_ins,
            alive: scratch.alive(),
            scratch: Some(folder),
            _scratch: Some(scratch),
        })
    }

    /// [`Self::prepare`] without a sandbox.
    fn prepare_plainly(
        &self,
        workspace: &Workspace,
        line: &CommandLine,
        argv: Vec<OsString>,
        mut variables: BTreeMap<String, OsString>,
        cwd: PathBuf,
        unsaved: Vec<Unsaved>,
    ) -> io::Result<Prepared> {
        if workspace.is_copy() {
            return Err(io::Error::other(
                "nothing would confine it to the copy of the workspace",
            ));
        }
        let dialect = self.surroundings.shell().dialect;
        let scratch = self.scratch()?;
        let (name, value) = Scratch::git_trace(&scratch.temporary());
        variables.insert(name.to_owned(), value.into());
        let invocation = self
            .surroundings
            .plainly(argv, dialect)?
            .marked(scratch.ended());
        Ok(Prepared {
            shown: line.command.clone(),
            invocation,
            variables,
            cwd,
            guard: None,
            workspace: workspace.clone(),
            stand_ins: on_disk(workspace, unsaved),
            alive: scratch.alive(),
            scratch: None,
            _scratch: None,
        })
    }
}

fn on_disk(workspace: &Workspace, unsaved: Vec<Unsaved>) -> Vec<StandIn> {
    let on_disk = |unsaved| StandIn::on_disk(workspace, unsaved);
    unsaved.into_iter().filter_map(on_disk).collect()
}

fn variables(surroundings: &Surroundings) -> BTreeMap<String, OsString> {
    let fixed = FIXED
        .iter()
        .map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
    let given = surroundings
        .variables
        .iter()
        .map(|(name, value)| (name.clone(), OsString::from(value)));
    #[cfg(unix)]
    let fixed = fixed.chain([("PATH".to_owned(), surroundings.path().into())]);
    given.chain(fixed).collect()
}

/// Has the command alone look for libraries where its variables say: they may name a folder of the workspace, from which
/// what starts the command must load nothing.
fn with_libraries(
    argv: Vec<OsString>,
    variables: &mut BTreeMap<String, OsString>,
) -> Vec<OsString> {
    let Some(folders) = variables.remove(LIBRARIES) else {
        return argv;
    };
    let mut set = OsString::from(format!("{LIBRARIES}="));
    set.push(folders);
    ["/usr/bin/env".into(), set]
        .into_iter()
        .chain(argv)
        .collect()
}
