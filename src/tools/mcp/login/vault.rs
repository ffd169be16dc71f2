//! Where logins are kept: the tokens in the system's keyring, or where there is none in a file that only its owner can
//! read. Which servers have one is in that file in either case, so that a keyring is not asked in vain.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::process::keyring;
use crate::tools::mcp::store::Store;
use crate::workspace::lock_file;

/// A login at a server. Everything in it belongs to its issuer, and is sent to nobody else but the server.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub issuer: String,
    pub token_endpoint: String,
    pub resource: String,
    pub client: ClientId,
    pub access: String,
    pub refresh: Option<String>,
    /// When it expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// The permissions that were requested.
    pub scope: Option<String>,
}

impl Tokens {
    /// The `Authorization` of a request with the access token.
    pub fn authorization(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.access)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// What nobody may read.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        let secrets = [
            Some(&self.access),
            self.refresh.as_ref(),
            self.client.secret.as_ref(),
        ];
        secrets.into_iter().flatten()
    }
}

/// How tandem is known to an authorization server.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ClientId {
    pub id: String,
    pub secret: Option<String>,
    /// Whether the secret is sent in a header rather than in the form.
    #[serde(default)]
    pub is_basic: bool,
}

/// An entry of the file.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
struct Entry {
    issuer: String,
    /// `None` if they are in the keyring.
    tokens: Option<Tokens>,
}

/// The logins of the person.
#[derive(Debug, Clone, Default)]
pub struct Vault {
    store: Store,
    /// The file that a process locks to change logins.
    lock: Option<PathBuf>,
    /// Whether the system has a keyring.
    has_keyring: bool,
}

impl Vault {
    /// The logins in a state directory, with the tokens in the keyring if the system has one.
    pub fn new(state: Option<&Path>, has_keyring: bool) -> Self {
        Self {
            store: Store::new(state, "logins.json"),
            lock: state.map(|state| state.join("mcp/logins.lock")),
            has_keyring: has_keyring && cfg!(unix),
        }
    }

    /// Keeps other processes, and other sessions of this one, from changing logins until the result is dropped.
    pub(super) async fn lock(&self) -> Option<File> {
        lock_file(self.lock.clone()?).await.ok()
    }

    /// The issuer of the login at a server.
    pub fn issuer(&self, server: &str) -> Option<String> {
        let mut entries: BTreeMap<String, Entry> = self.store.read();
        entries.remove(server).map(|entry| entry.issuer)
    }

    /// The tokens for a server.
    pub(super) async fn load(&self, server: &str) -> Option<Tokens> {
        let entry = self.store.read::<Entry>().remove(server)?;
        let tokens = match entry.tokens {
            Some(tokens) => tokens,
            None => serde_json::from_str(&keyring::lookup(SERVICE, server).await?).ok()?,
        };
        (tokens.issuer == entry.issuer).then_some(tokens)
    }

    /// Stores the tokens for a server. The caller has the lock.
    pub(super) async fn save(&self, server: &str, tokens: &Tokens) -> io::Result<()> {
        let is_in_keyring = self.has_keyring
            && keyring::keep(SERVICE, server, &serde_json::to_string(tokens)?).await;
        let mut entries: BTreeMap<String, Entry> = self.store.read();
        let entry = Entry {
            issuer: tokens.issuer.clone(),
            tokens: (!is_in_keyring).then(|| tokens.clone()),
        };
        entries.insert(server.to_owned(), entry);
        self.store.write(&entries)
    }

    /// Forgets the tokens for a server; whether there were any. The caller has the lock.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) async fn remove(&self, server: &str) -> io::Result<bool> {
        let mut entries: BTreeMap<String, Entry> = self.store.read();
        let Some(entry) = entries.remove(server) else {
            return Ok(false);
        };
        if entry.tokens.is_none() && !keyring::forget(SERVICE, server).await {
            return Err(io::Error::other(
                "cannot remove the login from the system's keyring",
            ));
        }
        self.store.write(&entries)?;
        Ok(true)
    }
}

/// The name of the entries in a keyring.
const SERVICE: &str = "tandem-mcp";
