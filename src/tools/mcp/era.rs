//! Which of the two eras of the protocol a server speaks: the one with a handshake (`initialize`), or the one since
//! 2026-07-28, where each request describes itself.
//!
//! Invariants: no single error code decides; a server that names a modern version is never sent `initialize`; what is
//! not an answer of the server decides nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::exchange::{Answer, Fault, Refusal};
use super::store::Store;

/// The version without a handshake.
pub(super) const MODERN: &str = "2026-07-28";
/// The version offered in a handshake. Tools are the same in all versions that have one.
pub(super) const LEGACY: &str = "2025-11-25";

/// The keys of `_meta`.
const PROTOCOL: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The headers do not match the message.
pub(super) const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;

/// The maximum number of remembered servers.
const MOST: usize = 500;

/// What `server/discover` found.
#[derive(Debug)]
pub(super) enum Era {
    /// The server describes itself.
    Modern(Value),
    /// It expects a handshake.
    Legacy,
}

impl Era {
    /// The verdict of an answer to `server/discover`.
    ///
    /// # Errors
    /// There is none: the server was not reached, requires a login, or speaks no version that tandem does.
    pub fn of(answer: Answer) -> Result<Self, Fault> {
        match answer {
            Ok(found) if lists_modern(&found["supportedVersions"]) => Ok(Self::Modern(found)),
            Err(Fault::Refused(refusal)) => match refusal.code {
                UNSUPPORTED_VERSION if lists_modern(&refusal.data["supported"]) => {
                    Ok(Self::Modern(Value::Null))
                }
                UNSUPPORTED_VERSION if !lists_legacy(&refusal.data["supported"]) => {
                    Err(unsupported(&refusal))
                }
                HEADER_MISMATCH | MISSING_CAPABILITY => Err(Fault::Refused(refusal)),
                _ => Ok(Self::Legacy),
            },
            // A status such as 404 or 405 comes without an error of the protocol.
            Ok(_) | Err(Fault::Denied(_)) => Ok(Self::Legacy),
            Err(fault) => Err(fault),
        }
    }
}

fn lists_modern(versions: &Value) -> bool {
    let mut versions = versions.as_array().into_iter().flatten();
    versions.any(|version| version == MODERN)
}

/// Versions are dates, so text sorts them.
fn lists_legacy(versions: &Value) -> bool {
    let mut versions = versions.as_array().into_iter().flatten();
    versions.any(|version| version.as_str().is_some_and(|version| version < MODERN))
}

fn unsupported(refusal: &Refusal) -> Fault {
    let versions = &refusal.data["supported"];
    Fault::invalid(&format!(
        "it speaks versions {versions} of MCP, tandem speaks {MODERN} and those up to {LEGACY}"
    ))
}

/// The capabilities tandem has in both eras.
pub(super) fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

/// What tandem is called.
pub(super) fn client() -> Value {
    json!({ "name": "tandem", "version": env!("CARGO_PKG_VERSION") })
}

/// Makes the parameters of a request describe it.
pub(super) fn describe(params: &mut Value) {
    params["_meta"][PROTOCOL] = json!(MODERN);
    params["_meta"][CLIENT] = client();
    params["_meta"][CAPABILITIES] = capabilities();
}

/// The version that a message is written in, where it says so.
pub(super) fn version(message: &Value) -> Option<&str> {
    message["params"]["_meta"][PROTOCOL].as_str()
}

/// What a server is called, in either era's answer to the first request.
pub(super) fn server_name(answer: &Value) -> Option<String> {
    let info = [&answer["_meta"][SERVER], &answer["serverInfo"]];
    info.into_iter().find_map(|info| {
        let (name, version) = (info["name"].as_str()?, info["version"].as_str()?);
        Some(format!("{name} {version}"))
    })
}

/// The servers that are known to expect a handshake, by fingerprint: another probe could start what they start only
/// when they are needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Eras(pub Store);

impl Eras {
    pub fn is_legacy(&self, server: &str) -> bool {
        self.0.read::<bool>().contains_key(server)
    }

    pub fn set_legacy(&self, server: &str, is_legacy: bool) {
        let mut known: BTreeMap<String, bool> = self.0.read();
        let changed = match is_legacy {
            true if known.len() < MOST => known.insert(server.to_owned(), true).is_none(),
            true => false,
            false => known.remove(server).is_some(),
        };
        if changed && let Err(error) = self.0.write(&known) {
            tracing::debug!("the era of an MCP server is not remembered: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i64, data: Value) -> Answer {
        Err(Fault::Refused(Refusal {
            code,
            message: "no".to_owned(),
            data,
        }))
    }

    #[track_caller]
    fn check(answer: Answer, expected: &str) {
        let shown = format!("{answer:?}");
        let verdict = match Era::of(answer) {
            Ok(Era::Modern(_)) => "modern",
            Ok(Era::Legacy) => "legacy",
            Err(_) => "none",
        };
        assert_eq!(verdict, expected, "{shown}");
    }

    #[test]
    fn no_single_error_decides_the_era() {
        let versions = |versions: &[&str]| json!({ "supportedVersions": versions });
        check(Ok(versions(&["2025-11-25", MODERN])), "modern");
        check(Ok(versions(&["2025-11-25"])), "legacy");
        check(Ok(versions(&[])), "legacy");
        check(Ok(json!("nonsense")), "legacy");
        let supported = |versions: &[&str]| json!({ "supported": versions });
        check(refused(UNSUPPORTED_VERSION, supported(&[MODERN])), "modern");
        check(refused(UNSUPPORTED_VERSION, supported(&[LEGACY])), "legacy");
        check(
            refused(UNSUPPORTED_VERSION, supported(&["2099-01-01"])),
            "none",
        );
        check(refused(HEADER_MISMATCH, Value::Null), "none");
        for code in [-32601, -32602, -32600, -32000, 0, 7] {
            check(refused(code, Value::Null), "legacy");
        }
        check(Err(Fault::Denied("404".to_owned())), "legacy");
        check(Err(Fault::Unreachable("refused".to_owned())), "none");
        check(Err(Fault::Over), "none");
    }
}
