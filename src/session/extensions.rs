//! What extends a session: commands; what MCP servers offer the person: prompts, which are commands, and resources,
//! which are read when they are mentioned; and servers of other agents, which the person may import.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::slash::Commands;
use super::{Attachment, Offered, Prompt, Setup, mcp};
use crate::agent::text::cut;
use crate::config;
use crate::text::display;

/// How long a prompt waits for its mentions, because an editor may not answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// How many servers of other agents are named; more are counted.
const NAMED: usize = 5;
/// How many of the servers that a session finds are remembered.
const MOST: usize = 50;

/// Searches for servers of other agents that the person has not been shown yet, if such servers are to be offered.
pub(super) fn importable(setup: &Setup) -> JoinSet<Vec<String>> {
    let mut search = JoinSet::new();
    if let Some(root) = setup
        .workspace
        .roots()
        .first()
        .filter(|_| setup.offers_import)
    {
        let (settings, root) = (setup.settings.clone(), root.path().to_owned());
        search.spawn_blocking(move || {
            let found = config::importable(&settings, &root).into_iter();
            let usable = found.filter(|server| {
                server.options.is_ok() && !settings.mcp.contains_key(&server.name)
            });
            // A repository may have chosen the names: they must not end a code span.
            let plain = |name: &str| display::escape_line(name).replace('`', "'");
            let names = usable
                .take(MOST)
                .map(|server| format!("`{}`", plain(&server.name)));
            mcp::unseen(names.collect(), settings.state_dir.as_deref())
        });
    }
    search
}

pub(super) struct Extensions {
    pub servers: mcp::Servers,
    /// How long the first prompt waits for them.
    pub start_timeout: Duration,
    pub commands: Commands,
    /// The commands for menus.
    pub menu: Arc<[Offered]>,
    /// The resources of MCP servers.
    pub resources: watch::Sender<Arc<[mcp::Resource]>>,
    /// The search for MCP servers of other agents that the person has not been shown yet.
    pub importable: JoinSet<Vec<String>>,
}

impl Extensions {
    /// Offers what the servers have listed.
    pub fn take_offers(&mut self) {
        let (prompts, resources) = self.servers.offers();
        self.commands.prompts = prompts;
        self.commands.servers = self.servers.prefixes();
        self.menu = self.commands.available().into();
        self.resources.send_replace(resources.into());
    }

    /// Offers the servers of other agents that were found, in one line.
    pub async fn import_offer(&mut self) -> Option<String> {
        let mut names = self.importable.join_next().await?.ok()?;
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        (!names.is_empty()).then(|| {
            format!(
                "MCP servers of other agents, which tandem does not start: {}. `tandem mcp import` lists and copies them",
                names.join(", ")
            )
        })
    }

    /// Replaces a command with the text of the server's prompt that it names, up to `most` bytes.
    ///
    /// # Errors
    /// There is no such text; the error is a sentence for the person.
    pub async fn fetch_prompt(&mut self, prompt: &mut Prompt, most: usize) -> Result<(), String> {
        for (at, part) in prompt.parts.iter().enumerate() {
            if let Attachment::Command { name, words } = part {
                let fetched = timeout_at(self.until(), self.servers.prompt(name, words)).await;
                let Ok(fetched) = fetched else {
                    return Err(format!("`/{name}`: its MCP server did not answer in time"));
                };
                let fetched = cut_to_fit(fetched?, most);
                prompt.parts.splice(at..=at, fetched);
                break;
            }
        }
        Ok(())
    }

    /// What a mentioned resource contains, or why it is not attached; `None` if no server is meant.
    pub async fn resource(
        &mut self,
        name: &str,
        until: Instant,
        most: usize,
    ) -> Option<Result<Vec<Attachment>, String>> {
        Some(match timeout_at(until, self.servers.resource(name)).await {
            Ok(read) => read?.map(|read| cut_to_fit(read, most)),
            Err(_) => Err("its MCP server did not answer in time".to_owned()),
        })
    }

    /// How long a prompt waits for servers: they may have to start first.
    pub fn until(&self) -> Instant {
        Instant::now() + self.start_timeout + TIMEOUT
    }
}

/// A server's text, no longer than a mention may be.
fn cut_to_fit(mut attached: Vec<Attachment>, most: usize) -> Vec<Attachment> {
    for part in &mut attached {
        if let Attachment::Shown { text, .. } = part {
            *text = cut(text, most, "ask for a smaller part");
        }
    }
    attached
}
