//! The tools of MCP servers join a turn before its first request.
//!
//! Invariant: the tools of a turn are fixed when it begins. If a server starts late, crashes or changes its tools, that
//! takes effect with a later prompt and changes the beginning of requests once.

use std::time::Duration;

use tokio::time::timeout;

use super::models::preamble;
use super::permission::Policy;
use crate::agent::{self, Steps, Turn};
use crate::model::Instructions;
use crate::tools::mcp::Joining;

/// A shorter wait is not reported.
const SILENT: Duration = Duration::from_secs(1);

/// Runs a turn with the servers' tools, too. Waits up to `server_timeout` for servers that were started for it, and reports that it waits.
pub(super) async fn run_turn(
    mut turn: Turn,
    mut joining: Joining,
    server_timeout: Duration,
    policy: Policy,
    steps: Steps,
) {
    if !joining.is_empty() {
        let cancel = turn.context.cancel.clone();
        let person = agent::person(&turn.id, &cancel, steps.clone());
        let ready = async {
            wait(&mut joining, server_timeout, &steps).await;
            let _late = timeout(server_timeout, joining.refresh()).await;
            joining.log_in(&person).await;
        };
        let _cancelled = cancel.run_until_cancelled(ready).await;
        let (more, notices) = joining.offer();
        for text in notices {
            steps.notice(text).await;
        }
        if !more.is_empty() {
            turn.tools = turn.tools.iter().cloned().chain(more).collect();
            let Instructions {
                conversation,
                system,
                ..
            } = &*turn.preamble.instructions;
            turn.preamble = preamble(
                &turn.provider,
                conversation,
                system.clone(),
                &turn.tools,
                &policy,
            );
        }
    }
    Box::pin(agent::run_turn(turn, steps)).await;
}

async fn wait(joining: &mut Joining, server_timeout: Duration, steps: &Steps) {
    if timeout(SILENT.min(server_timeout), joining.settled())
        .await
        .is_ok()
    {
        return;
    }
    let slow = joining.starting().join(", ");
    steps
        .notice(format!("waiting for MCP servers to start: {slow}"))
        .await;
    if timeout(server_timeout.saturating_sub(SILENT), joining.settled())
        .await
        .is_err()
    {
        let late = joining.starting().join(", ");
        steps
            .notice(format!(
                "MCP servers still starting: {late}; their tools will be available with a later prompt"
            ))
            .await;
    }
}
