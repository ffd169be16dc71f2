//! A server that requires a login: one in the browser, tokens that expire, and a server that leaks what it receives.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use url::Url;

use super::{add, call, prompt, results};
use crate::driver::{Client, World, choose, until};
use crate::loopback::{self, Request};

/// A token, and the refresh token for it.
const TOKEN: &str = "token-CANARY-0123456789";
const RENEWAL: &str = "renewal-CANARY-0123456789";

/// Where a server redirects whose tokens have to be renewed before each request.
const SOON: &str = "soon";

/// What a server and its authorization server received: the path and the credentials.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Serves both on one port; a session request that is answered with a redirect is sent to `elsewhere`.
fn serve(elsewhere: String) -> (String, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let port = loopback::listen(move |request, stream| {
        let origin = format!("http://{}", request.header("host").unwrap_or_default());
        let authorization = request.header("authorization").unwrap_or_default();
        let path = request
            .path
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned();
        let sent = format!("{authorization} {}", request.body);
        seen.lock().unwrap().push((path.clone(), sent));
        match path.as_str() {
            "/mcp" if authorization != format!("Bearer {TOKEN}") => {
                let challenge = "WWW-Authenticate: Bearer scope=\"tools\"\r\n";
                loopback::answer(stream, 401, challenge, "")
            }
            "/mcp" => answer(&request, stream, &elsewhere),
            "/.well-known/oauth-protected-resource/mcp" => {
                let found = json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] });
                loopback::document(stream, 200, &found)
            }
            "/.well-known/oauth-authorization-server" => loopback::document(
                stream,
                200,
                &json!({
                    "issuer": origin,
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "code_challenge_methods_supported": ["S256"],
                }),
            ),
            "/register" => loopback::document(stream, 201, &json!({ "client_id": "c1" })),
            "/token" => loopback::document(
                stream,
                200,
                &json!({ "access_token": TOKEN, "token_type": "Bearer", "refresh_token": RENEWAL, "expires_in": if elsewhere == SOON { 0 } else { u64::MAX } }),
            ),
            _ => loopback::answer(stream, 404, "", ""),
        }
    });
    (format!("http://127.0.0.1:{port}/mcp"), asked)
}

/// A current server whose tools echo what they receive.
fn answer(request: &Request, stream: &TcpStream, elsewhere: &str) -> std::io::Result<()> {
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let sent = request.header("authorization").unwrap_or_default();
    let result = match (
        message["method"].as_str().unwrap(),
        message["params"]["name"].as_str(),
    ) {
        ("server/discover", _) => {
            let tools = json!({ "listChanged": true });
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": tools } })
        }
        ("subscriptions/listen", _) => {
            let leak = json!({ "jsonrpc": "2.0", "method": format!("leaks {sent}") });
            return loopback::document(stream, 200, &leak);
        }
        ("tools/list", _) => {
            json!({ "tools": [{ "name": "repeat" }, { "name": "fail" }, { "name": "redirect" }] })
        }
        (_, Some("redirect")) => {
            let location = format!("Location: {elsewhere}\r\n");
            return loopback::answer(stream, 307, &location, "");
        }
        (_, Some("fail")) => {
            let error = json!({ "code": -32000, "message": format!("not with {sent}") });
            let failed = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            return loopback::document(stream, 200, &failed);
        }
        _ => json!({ "content": [{ "type": "text", "text": format!("you sent {sent}") }] }),
    };
    let answered = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    loopback::document(stream, 200, &answered)
}

/// Acts as the browser: the login page redirects back with a code.
pub fn come_back(page: &str, changed: &[(&str, &str)]) -> String {
    let page = Url::parse(page).unwrap();
    let field = |name: &str| {
        page.query_pairs()
            .find(|(key, _)| key == name)
            .unwrap()
            .1
            .into_owned()
    };
    let mut back = Url::parse(&field("redirect_uri")).unwrap();
    let mut fields = vec![
        ("code", "code-CANARY-0123".to_owned()),
        ("state", field("state")),
    ];
    fields.retain(|(name, _)| !changed.iter().any(|(other, _)| other == name));
    fields.extend(
        changed
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    back.query_pairs_mut().extend_pairs(fields);
    back.into()
}

/// Visits an address on this machine; returns the status line.
pub fn visit(address: &str) -> String {
    use std::io::{Read as _, Write as _};
    let url = Url::parse(address).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).unwrap();
    let target = address
        .split_once(&format!(":{}", url.port().unwrap()))
        .unwrap()
        .1;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// The login address that an ACP client is asked to open, and the ID of that request.
pub fn page(client: &mut Client) -> (String, Value) {
    let asked = client.next("elicitation/create");
    assert_eq!(asked["params"]["mode"], "url", "{asked}");
    client.respond(&asked, json!({ "action": "accept" }));
    let params = &asked["params"];
    let url = params["url"].as_str().unwrap().to_owned();
    (url, params["elicitationId"].clone())
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

/// Every file below a folder.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path => vec![path],
        })
        .collect()
}

#[test]
fn tokens_reach_their_server_and_nothing_else() {
    let calls = ["repeat", "fail", "redirect"].map(|name| call(&format!("web__{name}"), json!({})));
    let world = World::new(
        calls
            .into_iter()
            .chain([json!([{ "text": "done" }])])
            .collect(),
    );
    let (stranger, stranger_asked) = serve(String::new());
    let (url, asked) = serve(stranger);
    add(&world, &format!("[mcp.web]\nurl = {url:?}\n"));
    let (mut client, session) = start(&world);
    let id = client.prompt(&session, "go");
    let (page, name) = page(&mut client);
    assert!(
        page.contains("code_challenge_method=S256") && page.contains("scope=tools"),
        "{page}"
    );
    let waiting = client.next("elicitation/create");
    assert_eq!(waiting["params"]["mode"], "form");
    // Others connect to the port, too; only the response to this login counts.
    assert!(visit(&come_back(&page, &[("state", "guessed")])).contains("404"));
    assert!(visit(&come_back(&page, &[])).contains("200"));
    let ended = client.next("elicitation/complete");
    assert_eq!(
        ended["params"]["elicitationId"], name,
        "the browser is back"
    );
    for _call in 0..3 {
        let question = client.next("session/request_permission");
        client.respond(
            &question,
            json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
        );
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let results = results(&world);
    assert_eq!(results[0], "you sent Bearer [secret]");
    assert!(
        results[1].contains("not with Bearer [secret]"),
        "{results:?}"
    );
    let shown = client.seen.iter().map(Value::to_string).collect::<String>();
    let requests = format!("{:?}", world.rehearsal().requests());
    for canary in [TOKEN, RENEWAL, "code-CANARY-0123"] {
        assert!(
            !shown.contains(canary) && !requests.contains(canary),
            "{canary}"
        );
    }
    assert_eq!(client.end(), tandem::server::Ended::Well);
    client.finish();
    assert!(
        stranger_asked.lock().unwrap().is_empty(),
        "{stranger_asked:?}"
    );
    for (path, sent) in asked
        .lock()
        .unwrap()
        .iter()
        .filter(|(path, _)| path != "/mcp")
    {
        assert!(!sent.contains(TOKEN), "{path}: {sent}");
    }
    for file in files(&world.path().join(".home")) {
        let is_vault = file.ends_with("mcp/logins.json");
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert_eq!(text.contains("CANARY"), is_vault, "{}", file.display());
        #[cfg(unix)]
        if is_vault {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[test]
fn a_login_is_asked_for_once_and_lasts() {
    let script = || json!([call("web__repeat", json!({})), [{ "text": "done" }]]);
    let world = World::new(
        script()
            .as_array()
            .unwrap()
            .iter()
            .chain(script().as_array().unwrap())
            .cloned()
            .collect(),
    );
    let (url, _) = serve(String::new());
    add(&world, &format!("[mcp.web]\nurl = {url:?}\n"));
    let (mut client, session) = start(&world);
    let id = client.prompt(&session, "go");
    let (page, name) = page(&mut client);
    // Over SSH, the browser cannot reach the port: the address is pasted.
    let waiting = client.next("elicitation/create");
    let address = come_back(&page, &[]);
    client.respond(
        &waiting,
        json!({ "action": "accept", "content": { "address": address } }),
    );
    let ended = client.next("elicitation/complete");
    assert_eq!(ended["params"]["elicitationId"], name, "pasted");
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    client.answer(id);
    let next = client.session(&world);
    prompt(&mut client, &next);
    assert_eq!(results(&world), ["you sent Bearer [secret]"]);
}

#[test]
fn a_declined_login_is_reported_and_not_repeated() {
    let world = World::new(json!([[{ "text": "one" }], [{ "text": "two" }]]));
    let (url, _) = serve(String::new());
    add(&world, &format!("[mcp.web]\nurl = {url:?}\n"));
    let (mut client, session) = start(&world);
    let id = client.prompt(&session, "go");
    let asked = client.next("elicitation/create");
    client.respond(&asked, json!({ "action": "decline" }));
    client.answer(id);
    let notices = client.seen.iter().map(Value::to_string).collect::<String>();
    assert!(
        notices.contains("requires a login, which failed: it was declined"),
        "{notices}"
    );
    let id = client.prompt(&session, "again");
    client.answer(id);
    assert!(
        !client
            .seen
            .iter()
            .any(|message| message["method"] == "elicitation/create")
    );
}

/// The address a process prints, which the browser then visits.
#[cfg(unix)]
pub fn log_in_at_the_terminal(world: &World) {
    use std::io::{BufRead as _, BufReader};
    let mut command = world.command(&["mcp", "login", "web", "--no-browser"]);
    let mut program = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(program.stderr.as_mut().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let page = lines.find(|line| line.contains("redirect_uri=")).unwrap();
    assert!(visit(&come_back(page.trim(), &[])).contains("200"));
    assert!(program.wait().unwrap().success());
}

/// A turn that calls the server's tool, in one of three places; logs in if asked to. Returns whether it was asked.
#[cfg(unix)]
fn call_in(place: &str, world: &World) -> bool {
    use tandem::server::Transport;
    if place == "terminal" {
        let done = world.run(&["run", "go"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        return false;
    }
    let transport = if place == "acp" {
        Transport::Acp
    } else {
        Transport::Lsp
    };
    let (_program, mut client) = world.serve(transport);
    if place == "acp" {
        let offered = json!({ "elicitation": { "form": {}, "url": {} } });
        client.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": offered }),
        );
    } else {
        let window = json!({ "showDocument": { "support": true } });
        client.shake_hands(
            world.handshake(json!({ "experimental": { "tandem": {} }, "window": window })),
        );
    }
    let session = client.session(world);
    let id = client.prompt(&session, "go");
    let message = client.find(|message| {
        let method = message["method"].as_str().unwrap_or_default();
        ["elicitation/create", "session/request_permission"].contains(&method)
            || message["id"] == id
    });
    let is_asked = message.get("method").is_some();
    match message["method"].as_str() {
        Some("elicitation/create") => {
            client.seen.push_front(message);
            visit(&come_back(&page(&mut client).0, &[]));
        }
        Some(_) => {
            let allow = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
            client.respond(&message, allow);
            let shown = client.next("window/showDocument");
            assert_eq!(shown["params"]["external"], true, "{shown}");
            client.respond(&shown, json!({ "success": true }));
            visit(&come_back(shown["params"]["uri"].as_str().unwrap(), &[]));
        }
        None => client.seen.push_back(message),
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    is_asked
}

#[test]
fn a_login_without_https_is_refused() {
    let world = World::new(json!([]));
    world.write(
        ".home/config.toml",
        "[mcp.web]\nurl = \"http://tools.invalid/mcp\"\n",
    );
    let refused = world.run(&["mcp", "login", "web"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("requires an https `url`"),
        "{refused:?}"
    );
}

#[cfg(unix)]
#[test]
fn tokens_are_in_no_log() {
    use tandem::server::Transport;
    let world = World::new(json!([[{ "text": "done" }]]));
    let (url, _) = serve(String::new());
    world.write(".home/config.toml", &format!("[mcp.web]\nurl = {url:?}\n"));
    log_in_at_the_terminal(&world);
    let (_program, mut client) = world.serve(Transport::Acp);
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    client.answer(id);
    let log = world.home().join("state/logs/tandem.log");
    let mut logged = String::new();
    until("the server's message is logged", || {
        logged = std::fs::read_to_string(&log).unwrap_or_default();
        logged.contains("leaks Bearer")
    });
    assert!(!logged.contains(TOKEN), "{logged}");
}

#[cfg(unix)]
#[test]
fn a_login_in_one_place_holds_in_all() {
    for first in ["terminal", "lsp", "acp"] {
        let turn = [call("web__repeat", json!({})), json!([{ "text": "done" }])];
        let world = World::new(std::iter::repeat_n(turn, 3).flatten().collect());
        let (url, _) = serve(String::new());
        let config =
            format!("[permissions]\nallow = [\"web__repeat\"]\n[mcp.web]\nurl = {url:?}\n");
        world.write(".home/config.toml", &config);
        if first == "terminal" {
            log_in_at_the_terminal(&world);
        }
        let is_asked = call_in(first, &world);
        assert_eq!(is_asked, first != "terminal", "{first}");
        assert_eq!(results(&world), ["you sent Bearer [secret]"], "{first}");
        for place in ["terminal", "lsp", "acp"]
            .into_iter()
            .filter(|place| *place != first)
        {
            assert!(!call_in(place, &world), "{first}, then {place}");
            assert_eq!(
                results(&world),
                ["you sent Bearer [secret]"],
                "{first}, then {place}"
            );
        }
    }
}

#[test]
fn a_login_that_cannot_be_stored_lasts_for_its_session() {
    let repeat = || call("web__repeat", json!({}));
    let done = json!([{ "text": "done" }]);
    let world = World::new(json!([repeat(), repeat(), done]));
    let (url, _) = serve(SOON.to_owned());
    add(&world, &format!("[mcp.web]\nurl = {url:?}\n"));
    let vault = world.path().join(".home/state/mcp/logins.json/taken");
    std::fs::create_dir_all(vault).unwrap();
    let (mut client, session) = start(&world);
    let id = client.prompt(&session, "go");
    let (page, _) = page(&mut client);
    assert!(visit(&come_back(&page, &[])).contains("200"));
    client.next("elicitation/complete");
    for _call in 0..2 {
        let question = client.next("session/request_permission");
        choose(&mut client, &question, "allow_once");
    }
    client.answer(id);
    assert_eq!(results(&world), ["you sent Bearer [secret]"; 2]);
}
