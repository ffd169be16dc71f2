//! What the explorers of a turn work with: their model, and the session's own tools that read.

use std::sync::Arc;

use super::{Actor, connect, preamble};
use crate::agent::{Explorers, prompt};
use crate::model::Provider;
use crate::tools::ToolKind;

impl Actor {
    /// The explorers of a turn with this model.
    pub(super) fn explorers(&self, provider: &Provider) -> Arc<Explorers> {
        let explore = &self.settings.explore;
        let provider = match &explore.model {
            Some(name) => connect::provider_named(&self.settings, name, None)
                .map_err(|why| format!("explore.model: {}", why.message)),
            None => Ok(provider.clone()),
        };
        let reads = |kind| matches!(kind, ToolKind::Read | ToolKind::Search);
        let tools = self.tools.iter().filter(|tool| reads(tool.kind()));
        let tools: Arc<[_]> = tools.cloned().collect();
        let model = provider.map(|provider| {
            let system = prompt::explorer(&self.workspace, explore.bounds);
            let id = format!("{}-explore", self.id).into();
            let preamble = preamble(&provider, &id, system, &tools);
            (provider, preamble)
        });
        Explorers::new(model, tools, explore.bounds)
    }
}
