//! Where to log in to a server: its protected resource metadata (RFC 9728), and the metadata of the authorization server
//! it names (RFC 8414, `OpenID` Connect Discovery).
//!
//! Invariants: metadata is taken only from the issuer it names, byte for byte; every address is encrypted or on this
//! machine, and on this machine only for a server that is as well; no redirect is followed.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::Value;

use super::Challenge;
use crate::domain::is_loopback;
use crate::tools::mcp::http;

/// Timeout for one request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest document, in bytes.
const LONGEST: usize = 256 << 10;

/// How a server is logged in to.
#[derive(Debug)]
pub(super) struct Authorization {
    /// The server, as the authorization server knows it.
    pub resource: String,
    /// The permissions the server documents.
    pub scopes: Option<Vec<String>>,
    pub server: AuthorizationServer,
}

/// The metadata of an authorization server.
#[derive(Debug, Deserialize)]
pub(super) struct AuthorizationServer {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    pub scopes_supported: Option<Vec<String>>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    /// Whether an address without a registration is enough as a client ID.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    /// Whether each answer names the issuer.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct ProtectedResource {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// A client for logins at addresses that may be used with `server`.
pub(super) fn client(server: &Url) -> Result<Client, String> {
    let client = http::client(server, redirect::Policy::none())
        .timeout(TIMEOUT)
        // While the person is in the browser, servers close connections that wait.
        .pool_max_idle_per_host(0);
    client.build().map_err(|error| error.to_string())
}

/// Finds out how to log in to a server.
pub(super) async fn discover(
    client: &Client,
    server: &Url,
    challenge: &Challenge,
) -> Result<Authorization, String> {
    if secure(server.as_str(), server).is_err() {
        return Err("a login requires an https `url`".to_owned());
    }
    let ProtectedResource {
        resource,
        authorization_servers,
        scopes_supported,
    } = protected_resource(client, server, challenge).await?;
    let resource = match resource {
        Some(resource) if covers(&resource, server) => resource,
        Some(resource) => {
            return Err(format!(
                "it describes the login for another server, {resource}"
            ));
        }
        None => without_fragment(server),
    };
    let issuer = authorization_servers
        .first()
        .ok_or("it lists no authorization server")?;
    Ok(Authorization {
        resource,
        scopes: scopes_supported,
        server: authorization_server(client, server, issuer).await?,
    })
}

async fn protected_resource(
    client: &Client,
    server: &Url,
    challenge: &Challenge,
) -> Result<ProtectedResource, String> {
    let addresses = match &challenge.metadata {
        Some(named) => vec![secure(named, server)?],
        None => well_known(
            server,
            &[
                "/.well-known/oauth-protected-resource{}",
                "/.well-known/oauth-protected-resource",
            ],
        ),
    };
    for address in addresses {
        if let Some(document) = document(client, address).await? {
            return serde_json::from_value(document)
                .map_err(|error| format!("its description of the login is not valid: {error}"));
        }
    }
    Err("it does not say where to log in".to_owned())
}

async fn authorization_server(
    client: &Client,
    server: &Url,
    issuer: &str,
) -> Result<AuthorizationServer, String> {
    let address = secure(issuer, server)?;
    let addresses = well_known(
        &address,
        &[
            "/.well-known/oauth-authorization-server{}",
            "/.well-known/openid-configuration{}",
            "{}/.well-known/openid-configuration",
        ],
    );
    for address in addresses {
        let Some(document) = document(client, address).await? else {
            continue;
        };
        let found: AuthorizationServer = serde_json::from_value(document)
            .map_err(|error| format!("the metadata of {issuer} is not valid: {error}"))?;
        if found.issuer != issuer {
            return Err(format!(
                "the metadata at {issuer} belongs to another issuer, {}",
                found.issuer
            ));
        }
        let methods = &found.code_challenge_methods_supported;
        if !methods.iter().any(|method| method == "S256") {
            return Err(format!("{issuer} does not support PKCE with S256"));
        }
        let endpoints = [&found.authorization_endpoint, &found.token_endpoint];
        for endpoint in endpoints.into_iter().chain(&found.registration_endpoint) {
            secure(endpoint, server)?;
        }
        return Ok(found);
    }
    Err(format!("{issuer} has no metadata"))
}

/// The addresses with these paths on the server of a URL; `{}` stands for the URL's own path.
fn well_known(url: &Url, paths: &[&str]) -> Vec<Url> {
    let own = url.path().trim_end_matches('/');
    let at = |path: &&str| {
        let mut address = url.clone();
        address.set_path(&path.replace("{}", own));
        address.set_query(None);
        address.set_fragment(None);
        address
    };
    let mut addresses: Vec<Url> = paths.iter().map(at).collect();
    addresses.dedup();
    addresses
}

/// An address that nobody can listen in on.
fn secure(address: &str, server: &Url) -> Result<Url, String> {
    let url = Url::parse(address).map_err(|error| format!("it names {address:?}: {error}"))?;
    if url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url) && is_loopback(server)
    {
        return Ok(url);
    }
    Err(format!("it names {address}, which does not use https"))
}

/// Whether a token for `resource` is one for `server`: the same, or a path above it.
fn covers(resource: &str, server: &Url) -> bool {
    Url::parse(resource).is_ok_and(|resource| {
        let above = resource.path().trim_end_matches('/');
        let below = server.path().strip_prefix(above);
        resource.origin() == server.origin()
            && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    })
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// A JSON document; `None` if there is none at this address.
async fn document(client: &Client, address: Url) -> Result<Option<Value>, String> {
    let shown = address.to_string();
    let request = client.get(address).header("accept", "application/json");
    match send(request, &shown).await? {
        (StatusCode::OK, document) => Ok(document.is_object().then_some(document)),
        (status, _) if status.is_server_error() => Err(format!("{shown} answers {status}")),
        _ => Ok(None),
    }
}

/// Sends a request; returns the status and, as far as it is JSON, the body.
pub(super) async fn send(
    request: RequestBuilder,
    address: &str,
) -> Result<(StatusCode, Value), String> {
    let response = request.send().await;
    let response =
        response.map_err(|error| format!("{address} cannot be reached: {}", http::cause(error)))?;
    let status = response.status();
    let body = http::body(response, LONGEST).await;
    let body = body.map_err(|why| format!("{address} {why}"))?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn tokens_are_only_for_the_server_itself() {
        let server = url("https://a.example/mcp/x");
        for resource in [
            "https://a.example/mcp/x",
            "https://a.example/mcp/",
            "https://A.example",
            "https://a.example:443/mcp",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://a.example/mcp/xy",
            "https://a.example/mc",
            "https://b.example/mcp/x",
            "http://a.example/mcp/x",
            "https://a.example/mcp/x/y",
            "nonsense",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }

    #[test]
    fn unencrypted_addresses_are_refused() {
        let check = |address: &str, server: &str, expected: bool| {
            assert_eq!(
                secure(address, &url(server)).is_ok(),
                expected,
                "{address} {server}"
            );
        };
        check("https://a.example/x", "https://b.example", true);
        check("http://a.example/x", "https://b.example", false);
        check("http://127.0.0.1:7/x", "http://localhost:8", true);
        check("http://127.0.0.1:7/x", "https://b.example", false);
        check("file:///etc/passwd", "http://localhost:8", false);
    }

    #[test]
    fn well_known_addresses_keep_the_path() {
        let check = |server: &str, expected: &[&str]| {
            let found = well_known(&url(server), &["/w/x{}", "/w/x", "{}/w/x"]);
            let found: Vec<_> = found.into_iter().map(String::from).collect();
            assert_eq!(found, expected);
        };
        check(
            "https://a/mcp/?q#f",
            &["https://a/w/x/mcp", "https://a/w/x", "https://a/mcp/w/x"],
        );
        check("https://a/", &["https://a/w/x"]);
    }
}
