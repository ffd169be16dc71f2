//! `mcp/message`: MCP servers that the client has itself, over this connection (ACP, unstable). They are of the era without
//! a handshake: each message to one is a request that describes itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::domain::lock;
use crate::protocol::acp;
use crate::rpc::Peer;
use crate::workspace::{EditorError, McpRequest};

/// The requests to the client's servers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Relay(Arc<Shared>);

struct Shared {
    peer: Peer,
    last: AtomicU64,
    /// Who receives what a server says about a running request, by the id of that.
    running: Mutex<HashMap<String, mpsc::Sender<Value>>>,
}

impl Relay {
    pub fn new(peer: Peer) -> Self {
        Self(Arc::new(Shared {
            peer,
            last: AtomicU64::default(),
            running: Mutex::default(),
        }))
    }

    /// Sends a request, which ends with the future.
    pub async fn request(
        &self,
        request: McpRequest,
        notifications: mpsc::Sender<Value>,
    ) -> Result<Value, EditorError> {
        let id = self.0.last.fetch_add(1, Ordering::Relaxed).to_string();
        let message = acp::MessageMcpRequest::new(request.server, id.clone(), request.method)
            .params(request.params.as_object().cloned());
        lock(&self.0.running).insert(id.clone(), notifications);
        let _running = Running { relay: self, id };
        let answer = self.0.peer.request("mcp/message", &message).await;
        answer.map_err(|error| EditorError(error.to_string()))
    }

    /// A notification of a server about a running request.
    pub fn notify(&self, notification: &acp::MessageMcpNotification) {
        let id = notification.request_id.to_string();
        let message = json!({ "method": notification.method, "params": notification.params });
        let running = lock(&self.0.running).get(&id).cloned();
        // One too many is lost: the next says the same.
        let _full = running.map(|notifications| notifications.try_send(message));
    }
}

/// A request under way.
struct Running<'a> {
    relay: &'a Relay,
    id: String,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.relay.0.running).remove(&self.id);
    }
}
