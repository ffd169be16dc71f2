//! Logins at servers: OAuth 2.1 with codes, in the person's browser.
//!
//! Invariants: a token is sent to the server it was issued for and, to be renewed, to its issuer, and nowhere else; no
//! token is logged or shown; a server that names another issuer is logged in to anew.

mod callback;
mod challenge;
mod discovery;
mod vault;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::header::HeaderValue;
use reqwest::{Client, StatusCode, Url};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::text::{Redactor, display};
use crate::tools::{Person, Preview, Reply};
use callback::{Callback, Expected};
pub use challenge::Challenge;
use discovery::{Authorization, AuthorizationServer};
pub use vault::Vault;
use vault::{ClientId, Tokens};

/// How long a login waits for the browser.
const TIMEOUT: Duration = Duration::from_mins(5);
/// A token that expires within this many seconds is renewed first.
const SOON: u64 = 30;
/// The permission to renew tokens.
const OFFLINE: &str = "offline_access";

/// What the configuration says about logins at a server.
#[derive(Clone, Default)]
pub struct Registered {
    /// The client ID: one that the person was given, or the URL of a client metadata document.
    pub id: Option<String>,
    /// The secret that belongs to the id.
    pub secret: Option<String>,
    /// Whether the editor supplied the server, so that the configuration does not have it.
    pub is_supplied: bool,
}

/// The login at one server.
pub struct Login {
    /// Its name in the configuration.
    name: String,
    server: Url,
    registered: Registered,
    vault: Vault,
    /// Learns every token.
    secrets: Redactor,
    /// Loaded when first needed.
    tokens: Mutex<Option<Tokens>>,
    /// Whether the vault has had them: if they are not there any more, somebody has logged out.
    is_stored: AtomicBool,
}

/// Without anything secret.
impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Login").field(&self.name).finish()
    }
}

impl Login {
    /// The login at the server at `url`; the tokens are looked up when they are needed.
    ///
    /// # Errors
    /// The URL is not valid.
    pub fn new(
        name: &str,
        url: &str,
        registered: Registered,
        vault: Vault,
        secrets: Redactor,
    ) -> Result<Self, String> {
        secrets.add(registered.secret.as_deref());
        Ok(Self {
            name: name.to_owned(),
            server: Url::parse(url).map_err(|error| error.to_string())?,
            registered,
            vault,
            secrets,
            tokens: Mutex::default(),
            is_stored: AtomicBool::new(false),
        })
    }

    /// The `Authorization` of a request, with a token that is still valid.
    pub(super) async fn authorization(&self) -> Option<HeaderValue> {
        let mut current = self.current().await;
        let expires = current.as_ref()?.expires;
        if expires.is_some_and(|expires| expires <= now() + SOON) {
            self.renew(&mut current).await;
        }
        current.as_ref()?.authorization()
    }

    /// Renews the tokens after the server refused a request with this `Authorization`; false if a new login is necessary.
    pub(super) async fn renewed(&self, refused: &HeaderValue) -> bool {
        let mut current = self.current().await;
        let sent_now = current.as_ref().and_then(Tokens::authorization);
        // Another request may have renewed them meanwhile.
        sent_now.is_some_and(|sent_now| sent_now != *refused) || self.renew(&mut current).await
    }

    async fn current(&self) -> MutexGuard<'_, Option<Tokens>> {
        let mut current = self.tokens.lock().await;
        if current.is_none() {
            *current = self.load().await;
        }
        current
    }

    async fn load(&self) -> Option<Tokens> {
        let tokens = self.vault.load(self.server.as_str()).await?;
        self.secrets.add(tokens.secrets());
        self.is_stored.store(true, Ordering::Relaxed);
        Some(tokens)
    }

    /// Renews tokens; false if they cannot be.
    async fn renew(&self, current: &mut Option<Tokens>) -> bool {
        let Some(tokens) = current else {
            return false;
        };
        // A refresh token is often valid only once: the others wait, and then find the new ones.
        let _alone = self.vault.lock().await;
        if self.is_stored.load(Ordering::Relaxed) && self.issuer().is_none() {
            *current = None;
            return false;
        }
        if let Some(stored) = self.load().await
            && stored.access != tokens.access
        {
            *tokens = stored;
            return true;
        }
        let Some(refresh) = &tokens.refresh else {
            return false;
        };
        let Ok(client) = discovery::client(&self.server) else {
            return false;
        };
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
            ("resource", &tokens.resource),
        ];
        match request_tokens(&client, tokens, &form).await {
            Ok(renewed) => {
                self.keep(current, renewed).await;
                true
            }
            Err(why) => {
                tracing::debug!(
                    "a login at an MCP server was not renewed: {}",
                    self.secrets.redact(&why)
                );
                false
            }
        }
    }

    async fn keep(&self, current: &mut Option<Tokens>, tokens: Tokens) {
        self.secrets.add(tokens.secrets());
        let saved = self.vault.save(self.server.as_str(), &tokens).await;
        self.is_stored.store(saved.is_ok(), Ordering::Relaxed);
        if let Err(error) = saved {
            tracing::warn!(
                "the login at an MCP server lasts only as long as this session: {error}"
            );
        }
        *current = Some(tokens);
    }

    /// Where the person is logged in.
    pub fn issuer(&self) -> Option<String> {
        self.vault.issuer(self.server.as_str())
    }

    /// Forgets the tokens; whether there were any.
    ///
    /// # Errors
    /// They cannot be removed.
    pub async fn log_out(&self) -> std::io::Result<bool> {
        *self.tokens.lock().await = None;
        let _alone = self.vault.lock().await;
        self.vault.remove(self.server.as_str()).await
    }

    /// Logs in: asks the person to open the page of the authorization server, and waits until they are back.
    ///
    /// # Errors
    /// They declined, or it failed; the text completes `MCP server x …`.
    pub async fn log_in(&self, challenge: &Challenge, person: &Person) -> Result<(), String> {
        let name = &self.name;
        let client = discovery::client(&self.server)?;
        let found = discovery::discover(&client, &self.server, challenge).await;
        let found = found.map_err(|why| {
            let why = self.secrets.redact(&why).into_owned();
            let remedy = self.remedy();
            format!("requires a login, and {why}: {remedy}")
        })?;
        let tokens = self.tokens_of_person(&client, found, challenge, person);
        let tokens = tokens.await.map_err(|why| {
            let why = self.secrets.redact(&why).into_owned();
            let again = if self.registered.is_supplied {
                "the next session asks again".to_owned()
            } else {
                format!("`tandem mcp login {name}` tries again")
            };
            format!("requires a login, which failed: {why}. {again}")
        })?;
        let mut current = self.tokens.lock().await;
        let _alone = self.vault.lock().await;
        self.keep(&mut current, tokens).await;
        Ok(())
    }

    /// Where credentials are set, for a server without logins.
    pub(super) fn remedy(&self) -> String {
        let name = &self.name;
        if self.registered.is_supplied {
            return "the editor supplies this server, so set its credentials there".to_owned();
        }
        format!(
            "set its credentials in mcp.{name}.headers, such as {{ Authorization = \"Bearer …\" }}"
        )
    }

    async fn tokens_of_person(
        &self,
        client: &Client,
        found: Authorization,
        challenge: &Challenge,
        person: &Person,
    ) -> Result<Tokens, String> {
        let Authorization {
            resource,
            scopes,
            server,
        } = found;
        let callback = Callback::open().await;
        let callback =
            callback.map_err(|error| format!("cannot listen on a local port: {error}"))?;
        let scope = self.scope(challenge, scopes.as_deref(), &server).await;
        let id = self.client_id(client, &server, &callback.address()).await?;
        self.secrets.add(id.secret.as_deref());
        let expected = Expected {
            state: random()?,
            issuer: server.issuer.clone(),
            names_issuer: server.authorization_response_iss_parameter_supported,
        };
        let verifier = random()?;
        let proof = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        let page = Url::parse(&server.authorization_endpoint);
        let mut page = page.map_err(|error| error.to_string())?;
        page.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &id.id)
            .append_pair("redirect_uri", &callback.address())
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(proof))
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", &expected.state)
            .append_pair("resource", &resource)
            .extend_pairs(scope.iter().map(|scope| ("scope", scope)));
        let code = self.code(page, &expected, &callback, person).await?;
        self.secrets.add([&code, &verifier]);
        let login = Tokens {
            issuer: server.issuer,
            token_endpoint: server.token_endpoint,
            resource,
            client: id,
            scope,
            ..Tokens::default()
        };
        let form = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &callback.address()),
            ("code_verifier", &verifier),
            ("resource", &login.resource),
        ];
        request_tokens(client, &login, &form).await
    }

    /// The code that the page gives the person.
    async fn code(
        &self,
        page: Url,
        expected: &Expected,
        callback: &Callback,
        person: &Person,
    ) -> Result<String, String> {
        let declined = || "it was declined".to_owned();
        let name = display::escape_line(&self.name);
        let end = CancellationToken::new();
        let request = Preview {
            title: format!("Log in to the MCP server {name} at {}", expected.issuer),
            link: Some(page.into()),
            ..Preview::default()
        };
        if person.ask(request, end.clone()).await != Reply::Yes {
            return Err(declined());
        }
        let address = json!({ "type": "string", "title": "Address", "description": "The URL the browser was redirected to" });
        let waiting = Preview {
            title: format!("Waiting for the login to {name} in the browser"),
            note: Some(
                "if the browser cannot reach this machine, paste the URL it was redirected to"
                    .to_owned(),
            ),
            answers: Some(Vec::new()),
            form: Some(Box::new(
                json!({ "type": "object", "properties": { "address": address } }),
            )),
            ..Preview::default()
        };
        let pasted = async {
            loop {
                let pasted = match person.ask(waiting.clone(), end.clone()).await {
                    Reply::Text(pasted) => pasted,
                    Reply::Form(form) => match form.get("address").and_then(Value::as_str) {
                        Some(pasted) => pasted.to_owned(),
                        // The browser is still under way.
                        None => return std::future::pending().await,
                    },
                    Reply::Yes | Reply::No => return Err(declined()),
                };
                if let Some(code) = expected.pasted(&pasted) {
                    return code;
                }
            }
        };
        tokio::pin!(pasted);
        let code = tokio::select! {
            biased;
            code = callback.code(expected) => code,
            code = &mut pasted => return code,
            () = tokio::time::sleep(TIMEOUT) => Err("the login was not completed within 5 minutes".to_owned()),
        };
        // The question must be gone before the next one.
        end.cancel();
        let _withdrawn = tokio::time::timeout(Duration::from_secs(1), pasted).await;
        code
    }

    /// The permissions to ask for: what the server wants now and what was asked for before, or else what it documents.
    async fn scope(
        &self,
        challenge: &Challenge,
        documented: Option<&[String]>,
        server: &AuthorizationServer,
    ) -> Option<String> {
        let current = self.current().await;
        let before = current.as_ref().filter(|_| challenge.is_step_up);
        let before = before.and_then(|tokens| tokens.scope.as_deref());
        let before = before.unwrap_or_default();
        let wanted = match (&challenge.scope, documented) {
            (Some(scope), _) => scope.clone(),
            (None, Some(documented)) => documented.join(" "),
            (None, None) => String::new(),
        };
        let offered = server.scopes_supported.iter().flatten();
        let mut scopes: Vec<&str> = Vec::new();
        for scope in before
            .split_whitespace()
            .chain(wanted.split_whitespace())
            .chain(
                offered
                    .map(String::as_str)
                    .filter(|scope| *scope == OFFLINE),
            )
        {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        (!scopes.is_empty()).then(|| scopes.join(" "))
    }

    /// How the authorization server is to know tandem: as the configuration says, by the address of a metadata document,
    /// or by a registration of its own.
    async fn client_id(
        &self,
        client: &Client,
        server: &AuthorizationServer,
        callback: &str,
    ) -> Result<ClientId, String> {
        let issuer = &server.issuer;
        match &self.registered.id {
            Some(id) if !id.starts_with("https://") => {
                let before = self.vault.issuer(self.server.as_str());
                if let Some(before) = before.filter(|before| before != issuer) {
                    return Err(format!(
                        "it now names {issuer}, but the client ID was issued by {before}; if that is right, log out and log in again"
                    ));
                }
                let secret = self.registered.secret.clone();
                let methods = server.token_endpoint_auth_methods_supported.as_deref();
                let is_basic = methods.is_none_or(|methods| supports(methods, BASIC));
                return Ok(ClientId {
                    id: id.clone(),
                    secret,
                    is_basic,
                });
            }
            Some(id) if server.client_id_metadata_document_supported => {
                return Ok(ClientId {
                    id: id.clone(),
                    ..ClientId::default()
                });
            }
            _ => {}
        }
        let Some(endpoint) = &server.registration_endpoint else {
            let name = &self.name;
            return Err(format!(
                "{issuer} does not let clients register themselves: register tandem there, and set mcp.{name}.client-id"
            ));
        };
        register(client, endpoint, server, callback).await
    }
}

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";

fn supports(methods: &[String], wanted: &str) -> bool {
    methods.iter().any(|method| method == wanted)
}

/// Registers tandem for this login (RFC 7591).
async fn register(
    client: &Client,
    endpoint: &str,
    server: &AuthorizationServer,
    callback: &str,
) -> Result<ClientId, String> {
    let methods = server.token_endpoint_auth_methods_supported.as_deref();
    let method = methods.and_then(|methods| {
        ["none", BASIC, POST]
            .into_iter()
            .find(|method| supports(methods, method))
    });
    let tandem = json!({
        "client_name": "tandem",
        "application_type": "native",
        "redirect_uris": [callback],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.unwrap_or("none"),
    });
    let request = client
        .post(endpoint)
        .header("content-type", "application/json")
        .body(tandem.to_string());
    let (status, answer) = discovery::send(request, endpoint).await?;
    let Some(id) = answer["client_id"].as_str().filter(|_| status.is_success()) else {
        return Err(format!(
            "{endpoint} refused to register tandem: {}",
            reason(status, &answer)
        ));
    };
    let secret = answer["client_secret"].as_str();
    Ok(ClientId {
        id: id.to_owned(),
        secret: secret.map(str::to_owned),
        is_basic: match answer["token_endpoint_auth_method"].as_str().or(method) {
            Some(method) => method == BASIC,
            None => true,
        },
    })
}

/// Asks an issuer for tokens; what the answer leaves out stays as it is.
async fn request_tokens(
    client: &Client,
    login: &Tokens,
    form: &[(&str, &str)],
) -> Result<Tokens, String> {
    let ClientId {
        id,
        secret,
        is_basic,
    } = &login.client;
    let endpoint = &login.token_endpoint;
    let mut request = client
        .post(endpoint)
        .header("accept", "application/json")
        .header("content-type", "application/x-www-form-urlencoded");
    let mut form = form.to_vec();
    match secret {
        Some(secret) if *is_basic => {
            let encode = |text: &str| {
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
            };
            let pair = STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
            request = request.header("authorization", format!("Basic {pair}"));
        }
        secret => {
            form.push(("client_id", id));
            form.extend(
                secret
                    .iter()
                    .map(|secret| ("client_secret", secret.as_str())),
            );
        }
    }
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let (status, answer) = discovery::send(request.body(body), endpoint).await?;
    let is_bearer = answer["token_type"]
        .as_str()
        .is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let access = answer["access_token"].as_str();
    let Some(access) = access.filter(|_| status.is_success() && is_bearer) else {
        return Err(format!(
            "{endpoint} did not issue a token: {}",
            reason(status, &answer)
        ));
    };
    let refresh = answer["refresh_token"].as_str().map(str::to_owned);
    Ok(Tokens {
        access: access.to_owned(),
        refresh: refresh.or_else(|| login.refresh.clone()),
        expires: answer["expires_in"]
            .as_u64()
            .map(|seconds| now().saturating_add(seconds)),
        ..login.clone()
    })
}

/// What an error of OAuth says, without the rest of the answer.
fn reason(status: StatusCode, answer: &Value) -> String {
    let parts = [&answer["error"], &answer["error_description"]];
    let words: Vec<_> = parts.into_iter().filter_map(Value::as_str).collect();
    if words.is_empty() {
        status.to_string()
    } else {
        words.join(", ")
    }
}

/// A value that nobody can guess.
fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the system's random number generator failed".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
