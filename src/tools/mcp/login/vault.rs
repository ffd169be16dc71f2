//! Where logins are kept: the tokens in the system's keyring, or where there is none in a file that only its owner can
//! read. Which servers have one is in that file in either case, so that a keyring is not asked in vain.
#![expect(
    clippy::disallowed_methods,
    reason = "the programs of the system's keyring"
)]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::tools::mcp::store::Store;

/// A keyring may ask for a password.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A login at a server. Everything in it belongs to its issuer, and is sent to nobody else but the server.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub issuer: String,
    pub token_endpoint: String,
    pub resource: String,
    pub client: ClientId,
    pub access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// When it expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The permissions that were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// How tandem is known to an authorization server.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ClientId {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether the secret is sent in a header rather than in the form.
    #[serde(default)]
    pub is_basic: bool,
}

/// An entry of the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    issuer: String,
    /// `None` if they are in the keyring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
}

/// The logins of the person.
#[derive(Debug, Clone, Default)]
pub struct Vault {
    store: Store,
    /// Whether the system has a keyring.
    has_keyring: bool,
}

impl Vault {
    /// The logins in a state directory, with the tokens in the keyring if the system has one.
    #[must_use]
    pub fn new(state: Option<&Path>, has_keyring: bool) -> Self {
        Self {
            store: Store::new(state, "logins.json"),
            has_keyring: has_keyring && cfg!(unix),
        }
    }

    /// The issuer of the login at a server.
    #[must_use]
    pub fn issuer(&self, server: &str) -> Option<String> {
        let mut entries: BTreeMap<String, Entry> = self.store.read();
        entries.remove(server).map(|entry| entry.issuer)
    }

    /// The tokens for a server.
    pub(super) async fn load(&self, server: &str) -> Option<Tokens> {
        let entry = self.store.read::<Entry>().remove(server)?;
        let tokens = match entry.tokens {
            Some(tokens) => tokens,
            None => serde_json::from_str(&lookup(server).await?).ok()?,
        };
        (tokens.issuer == entry.issuer).then_some(tokens)
    }

    /// Stores the tokens for a server.
    pub(super) async fn save(&self, server: &str, tokens: &Tokens) -> io::Result<()> {
        let is_in_keyring = self.has_keyring && keep(server, &serde_json::to_string(tokens)?).await;
        let mut entries: BTreeMap<String, Entry> = self.store.read();
        let entry = Entry {
            issuer: tokens.issuer.clone(),
            tokens: (!is_in_keyring).then(|| tokens.clone()),
        };
        entries.insert(server.to_owned(), entry);
        self.store.write(&entries)
    }

    /// Forgets the tokens for a server; whether there were any.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn remove(&self, server: &str) -> io::Result<bool> {
        let mut entries: BTreeMap<String, Entry> = self.store.read();
        let Some(entry) = entries.remove(server) else {
            return Ok(false);
        };
        if entry.tokens.is_none() {
            forget(server).await;
        }
        self.store.write(&entries)?;
        Ok(true)
    }
}

/// The name of the entries in a keyring.
const SERVICE: &str = "tandem-mcp";

async fn lookup(server: &str) -> Option<String> {
    if cfg!(target_os = "macos") {
        let arguments = ["find-generic-password", "-w", "-s", SERVICE, "-a", server];
        return run("security", &arguments, "").await;
    }
    let arguments = ["lookup", "service", SERVICE, "server", server];
    run("secret-tool", &arguments, "").await
}

/// The text is passed on standard input: arguments are visible to other users.
async fn keep(server: &str, text: &str) -> bool {
    if cfg!(target_os = "macos") {
        let quoted =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let (server, text) = (quoted(server), quoted(text));
        let line = format!("add-generic-password -U -s {SERVICE} -a {server} -w {text}\n");
        return run("security", &["-i"], &line).await.is_some();
    }
    let label = "--label=tandem: login at an MCP server";
    let arguments = ["store", label, "service", SERVICE, "server", server];
    run("secret-tool", &arguments, text).await.is_some()
}

async fn forget(server: &str) {
    let _not_there = if cfg!(target_os = "macos") {
        let arguments = ["delete-generic-password", "-s", SERVICE, "-a", server];
        run("security", &arguments, "").await
    } else {
        let arguments = ["clear", "service", SERVICE, "server", server];
        run("secret-tool", &arguments, "").await
    };
}

/// What a program prints; `None` if it is missing or fails.
async fn run(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let work = async {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut stdin = child.stdin.take()?;
        stdin.write_all(input.as_bytes()).await.ok()?;
        drop(stdin);
        let output = child.wait_with_output().await.ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim_end().to_owned())
    };
    timeout(TIMEOUT, work).await.ok()?
}
