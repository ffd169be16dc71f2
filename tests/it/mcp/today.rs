//! A current server (2026-07-28) over HTTP: what it reports about its list of tools, tokens that expire, and pages it
//! opens.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use super::login::log_in_at_the_terminal;
use super::login::{come_back, page, visit};
use super::{add, call, offered, prompt, results};
use crate::driver::{Client, World, until};
use crate::loopback::{self, Request};
#[cfg(target_os = "linux")]
use crate::program::Program;

/// Its behavior, and the requests it received.
#[derive(Default)]
struct State {
    /// The number of the newest token; 0 if none is required.
    token: u32,
    /// Tokens before this one are refused.
    revoked: u32,
    /// How long a token is valid, in seconds.
    lifetime: u64,
    /// Whether it renews tokens.
    renews: bool,
    /// How long its list of tools is valid, in milliseconds.
    ttl: Option<i64>,
    /// Whether the tool `one` is now called `two`.
    renamed: bool,
    /// The streams on which it reports changes.
    changes: Option<TcpStream>,
    /// The methods and paths, and the grants.
    asked: Vec<String>,
}

type Server = Arc<Mutex<State>>;

/// Adds such a server to the configuration.
fn serve(world: &World, state: State) -> Server {
    let server: Server = Arc::new(Mutex::new(state));
    let shared = Arc::clone(&server);
    let port = loopback::listen(move |request, stream| answer(&shared, &request, stream));
    add(
        world,
        &format!("[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"),
    );
    server
}

fn count(server: &Server, what: &str) -> usize {
    let state = server.lock().unwrap();
    state.asked.iter().filter(|asked| *asked == what).count()
}

fn answer(server: &Server, request: &Request, stream: &TcpStream) -> std::io::Result<()> {
    let origin = format!("http://{}", request.header("host").unwrap_or_default());
    let path = request.path.split('?').next().unwrap_or_default();
    let mut state = server.lock().unwrap();
    match path {
        "/mcp" => {}
        "/.well-known/oauth-protected-resource/mcp" => {
            let found =
                json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] });
            return loopback::document(stream, 200, &found);
        }
        "/.well-known/oauth-authorization-server" => {
            let found = json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"],
            });
            return loopback::document(stream, 200, &found);
        }
        "/register" => return loopback::document(stream, 201, &json!({ "client_id": "c1" })),
        "/token" => return grant(&mut state, &origin, request, stream),
        _ => return loopback::answer(stream, 404, "", ""),
    }
    let authorization = request.header("authorization").unwrap_or_default();
    let is_valid = (state.revoked.max(1)..=state.token)
        .any(|token| authorization == format!("Bearer token-{token}"));
    if state.token > 0 && !is_valid {
        return loopback::answer(stream, 401, "WWW-Authenticate: Bearer\r\n", "");
    }
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let method = message["method"].as_str().unwrap();
    state.asked.push(method.to_owned());
    let params = &message["params"];
    let result = match method {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
        }),
        "subscriptions/listen" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let mut changes = stream.try_clone()?;
            changes.write_all(head.as_bytes())?;
            say(&changes, "notifications/subscriptions/acknowledged")?;
            state.changes = Some(changes);
            return Ok(());
        }
        "tools/list" => {
            let name = if state.renamed { "two" } else { "one" };
            let tools = [name, "rename", "revoke", "open"].map(|name| json!({ "name": name }));
            let mut list = json!({ "tools": tools });
            if let Some(ttl) = state.ttl {
                list["ttlMs"] = ttl.into();
            }
            list
        }
        _ => called(&mut state, params),
    };
    let answered = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    loopback::document(stream, 200, &answered)
}

fn called(state: &mut State, params: &Value) -> Value {
    let said = match params["name"].as_str().unwrap() {
        "rename" => {
            state.renamed = true;
            if let Some(changes) = &state.changes {
                say(changes, "notifications/tools/list_changed").unwrap();
            }
            "renamed".to_owned()
        }
        // The token is refused from the next request on.
        "revoke" => {
            state.revoked = state.token + 1;
            "revoked".to_owned()
        }
        "open" => {
            let Some(answer) = params["inputResponses"].get("page") else {
                let page =
                    json!({ "mode": "url", "url": "https://example.com/pay", "message": "Pay" });
                return json!({
                    "resultType": "input_required",
                    "inputRequests": { "page": { "method": "elicitation/create", "params": page } },
                    "requestState": "s",
                });
            };
            answer.to_string()
        }
        name => format!("this is {name}"),
    };
    json!({ "content": [{ "type": "text", "text": said }] })
}

/// Sends a notification on an open stream.
fn say(mut stream: &TcpStream, method: &str) -> std::io::Result<()> {
    let message = json!({ "jsonrpc": "2.0", "method": method, "params": {} });
    stream.write_all(format!("data: {message}\n\n").as_bytes())
}

/// The token endpoint: each refresh token works once.
fn grant(
    state: &mut State,
    origin: &str,
    request: &Request,
    stream: &TcpStream,
) -> std::io::Result<()> {
    let form = url::form_urlencoded::parse(request.body.as_bytes());
    let form: std::collections::HashMap<_, _> = form.into_owned().collect();
    let kind = form["grant_type"].clone();
    state.asked.push(kind.clone());
    assert_eq!(form["resource"], format!("{origin}/mcp"));
    if kind == "refresh_token" {
        let is_newest = form["refresh_token"] == format!("renewal-{}", count_of(state, "granted"));
        if !state.renews || !is_newest {
            // A client that reuses one may have stolen it (OAuth 2.1, section 4.3.1).
            state.revoked = state.token + 1;
            return loopback::document(stream, 400, &json!({ "error": "invalid_grant" }));
        }
    }
    state.asked.push("granted".to_owned());
    let next = state.token + u32::from(kind == "refresh_token");
    state.token = next.max(state.revoked).max(1);
    let renewal = format!("renewal-{}", count_of(state, "granted"));
    let token = format!("token-{}", state.token);
    let tokens = json!({ "access_token": token, "token_type": "Bearer", "refresh_token": renewal, "expires_in": state.lifetime });
    loopback::document(stream, 200, &tokens)
}

fn count_of(state: &State, what: &str) -> usize {
    state.asked.iter().filter(|asked| *asked == what).count()
}

/// A world whose model calls these tools of the server, one per turn.
fn world(names: &[&str]) -> World {
    let turns = names.iter().flat_map(|name| {
        let call = call(&format!("web__{name}"), json!({}));
        [call, json!([{ "text": "done" }])]
    });
    World::new(turns.collect())
}

fn start(world: &World) -> (Client, String) {
    let mut client = world.acp();
    let elicitation = json!({ "elicitation": { "form": {}, "url": {} } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": elicitation }),
    );
    let session = client.session(world);
    (client, session)
}

fn allow(client: &mut Client) {
    let question = client.next("session/request_permission");
    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    client.respond(&question, yes);
}

/// Logs in in the browser.
fn log_in(client: &mut Client) {
    let (page, _) = page(client);
    client.next("elicitation/create");
    assert!(visit(&come_back(&page, &[])).contains("200"));
}

#[test]
fn a_list_of_tools_is_valid_as_long_as_its_server_says() {
    for (ttl, is_stale) in [(None, false), (Some(3_600_000), false), (Some(0), true)] {
        let world = world(&["one", "one"]);
        let state = State {
            ttl,
            ..State::default()
        };
        let server = serve(&world, state);
        let (mut client, session) = start(&world);
        prompt(&mut client, &session);
        let before = count(&server, "tools/list");
        prompt(&mut client, &session);
        let more = count(&server, "tools/list") - before;
        assert_eq!((before > 1, more > 0), (is_stale, is_stale), "{ttl:?}");
        assert_eq!(results(&world), ["this is one", "this is one"]);
    }
}

#[test]
fn changes_of_tools_are_reported_while_it_listens() {
    let world = world(&["rename", "two"]);
    let server = serve(&world, State::default());
    let (mut client, session) = start(&world);
    let id = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    until("tandem listens", || {
        count(&server, "subscriptions/listen") == 1
    });
    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    client.respond(&question, yes);
    client.answer(id);
    until("tandem lists again", || count(&server, "tools/list") == 2);
    prompt(&mut client, &session);
    let requests = world.rehearsal().requests();
    assert!(
        offered(&requests[1]).contains(&"web__one"),
        "fixed within a turn"
    );
    assert!(
        offered(&requests[2]).contains(&"web__two"),
        "{:?}",
        offered(&requests[2])
    );
    assert_eq!(results(&world)[1], "this is two");
}

#[test]
fn tokens_are_renewed_before_they_expire_and_when_they_are_refused() {
    for (lifetime, names) in [(10, &["one", "one"][..]), (3600, &["revoke", "one"])] {
        let world = world(names);
        let state = State {
            token: 1,
            lifetime,
            renews: true,
            ..State::default()
        };
        let server = serve(&world, state);
        let (mut client, session) = start(&world);
        let id = client.prompt(&session, "go");
        log_in(&mut client);
        allow(&mut client);
        client.answer(id);
        prompt(&mut client, &session);
        assert_eq!(results(&world)[1], "this is one");
        assert!(count(&server, "refresh_token") >= 1, "{lifetime}");
        assert_eq!(
            count(&server, "authorization_code"),
            1,
            "the person logged in once"
        );
    }
}

/// Another process renews the tokens, or logs out, at the same moment.
#[cfg(target_os = "linux")]
#[test]
fn a_token_is_renewed_by_one_process_at_a_time() {
    for is_renewed in [true, false] {
        let world = world(&[]);
        let state = State {
            token: 1,
            lifetime: 10,
            ..State::default()
        };
        let server = serve(&world, state);
        world.write(".home/config.toml", &world.read(".home/config/config.toml"));
        log_in_at_the_terminal(&world);
        let vault = world.home().join("state/mcp/logins.json");
        let lock = std::fs::File::create(vault.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let mut check = world.command(&["mcp", "check", "web"]);
        let mut program = Program::start(&mut check);
        let pid = format!(" {} ", program.pid().as_raw_nonzero());
        until("the program waits", || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks
                .lines()
                .any(|lock| lock.contains("-> FLOCK") && lock.contains(&pid))
        });
        server.lock().unwrap().token = 2;
        let mut logins: Value = serde_json::from_slice(&std::fs::read(&vault).unwrap()).unwrap();
        for login in logins.as_object_mut().unwrap().values_mut() {
            login["tokens"]["access"] = "token-2".into();
            login["tokens"]["expires"] = u64::MAX.into();
        }
        if !is_renewed {
            logins = json!({});
        }
        std::fs::write(&vault, logins.to_string()).unwrap();
        drop(lock);
        assert_eq!(program.ends().success(), is_renewed);
        assert_eq!(count(&server, "refresh_token"), 0);
        assert_eq!(count(&server, "tools/list") > 0, is_renewed);
        assert_eq!(std::fs::read_to_string(&vault).unwrap(), logins.to_string());
    }
}

#[test]
fn a_token_that_cannot_be_renewed_leads_to_another_login() {
    let world = world(&["revoke", "one"]);
    let state = State {
        token: 1,
        lifetime: 3600,
        ..State::default()
    };
    let server = serve(&world, state);
    let (mut client, session) = start(&world);
    let id = client.prompt(&session, "go");
    log_in(&mut client);
    allow(&mut client);
    client.answer(id);
    let id = client.prompt(&session, "go");
    allow(&mut client);
    log_in(&mut client);
    client.answer(id);
    assert_eq!(results(&world)[1], "this is one");
    assert_eq!(count(&server, "refresh_token"), 1);
    assert_eq!(count(&server, "authorization_code"), 2);
}

#[test]
fn a_server_opens_a_page_with_the_consent_of_the_person() {
    for (action, expected) in [
        ("accept", "accept"),
        ("decline", "decline"),
        ("cancel", "decline"),
    ] {
        let world = world(&["open"]);
        serve(&world, State::default());
        let (mut client, session) = start(&world);
        let id = client.prompt(&session, "go");
        allow(&mut client);
        let asked = client.next("elicitation/create");
        assert_eq!(asked["params"]["mode"], "url");
        assert_eq!(asked["params"]["url"], "https://example.com/pay");
        client.respond(&asked, json!({ "action": action }));
        client.answer(id);
        assert_eq!(results(&world), [json!({ "action": expected }).to_string()]);
    }
}
