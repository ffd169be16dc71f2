//! What MCP servers offer the person: prompts, which are commands, and resources, which are read when they are
//! mentioned. And servers of other agents, which the person may import.

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::context::{TIMEOUT, note};
use super::{Actor, Attachment, Prompt, Setup, mcp};
use crate::agent::event::AgentEvent;
use crate::agent::text::cut;
use crate::config;
use crate::text::display;

/// How many servers of other agents are named; more are counted.
const NAMED: usize = 5;
/// How many are remembered of those that a session finds.
const MOST: usize = 50;

/// Searches for servers of other agents that the person was not shown yet, if they are to be offered.
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
            // The names are a repository's: they end no code span.
            let plain = |name: &str| display::escape_line(name).replace('`', "'");
            let names = usable
                .take(MOST)
                .map(|server| format!("`{}`", plain(&server.name)));
            mcp::unseen(names.collect(), settings.state_dir.as_deref())
        });
    }
    search
}

impl Actor {
    /// Offers what the servers have listed.
    pub(super) fn take_offers(&mut self) {
        let (prompts, resources) = self.servers.offers();
        self.commands.prompts = prompts;
        self.commands.servers = self.servers.prefixes();
        self.offered = self.commands.available().into();
        self.resources.send_replace(resources.into());
    }

    /// Offers the servers of other agents that were found, in one line.
    pub(super) async fn offer_import(&mut self) {
        let Some(Ok(mut names)) = self.importable.join_next().await else {
            return;
        };
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        names.extend((more > 0).then(|| format!("{more} more")));
        if !names.is_empty() {
            let message = format!(
                "MCP servers of other agents, which tandem does not start: {}. `tandem mcp import` lists and copies them",
                names.join(", ")
            );
            self.tell(AgentEvent::Notice { message });
        }
    }

    /// Puts the text of a server's prompt in the place of the command that names it.
    ///
    /// # Errors
    /// There is no such text: a sentence for the person.
    pub(super) async fn fetch_prompt(&mut self, prompt: &mut Prompt) -> Result<(), String> {
        let until = self.servers_until();
        let is_command = |part: &Attachment| matches!(part, Attachment::Command { .. });
        if let Some(at) = prompt.parts.iter().position(is_command)
            && let Attachment::Command { name, words } = prompt.parts[at].clone()
        {
            let fetched = timeout_at(until, self.servers.prompt(&name, &words)).await;
            let late = |_late| format!("`/{name}`: its MCP server did not answer in time");
            let fetched = self.cut_to_fit(fetched.map_err(late)??);
            prompt.parts.splice(at..=at, fetched);
        }
        Ok(())
    }

    /// What a mentioned resource contains, or a note why it is not attached; `None` if no server is meant.
    pub(super) async fn resource(&mut self, name: &str, until: Instant) -> Option<Vec<Attachment>> {
        let read = timeout_at(until, self.servers.resource(name)).await;
        let late = |_late| Some(Err("its MCP server did not answer in time".to_owned()));
        Some(match read.unwrap_or_else(late)? {
            Ok(read) => self.cut_to_fit(read),
            Err(why) => vec![note(&format!("{name} was not included: {why}"))],
        })
    }

    /// How long a prompt waits for servers: they may have to start first.
    pub(super) fn servers_until(&self) -> Instant {
        Instant::now() + self.server_timeout + TIMEOUT
    }

    /// A server's text without secrets, and no longer than a mention may be.
    fn cut_to_fit(&self, mut attached: Vec<Attachment>) -> Vec<Attachment> {
        for part in &mut attached {
            if let Attachment::Shown { text, .. } = part {
                *text = cut(text, self.most_of_a_mention(), "ask for a smaller part");
                self.secrets.clean(text);
            }
        }
        attached
    }
}
