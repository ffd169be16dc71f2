//! `initialize` on both transports: who the client is, what it supports, and what tandem offers.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::capabilities::Capabilities;
use super::dispatch::{Answer, Later, error, invalid, later};
use super::editor::{Abilities, FileAccess};
use super::front_end::Offers;
use super::lsp::language::operations;
use super::wire::failure;
use super::{Phase, Server};
use crate::protocol::{acp, lsp};
use crate::rpc::ErrorCode;
use crate::session;
use crate::text::Encoding;
use crate::workspace::native::file_of;
use crate::workspace::{Documents, Root};

/// `TextDocumentSyncKind`: every change carries the full text.
const WHOLE_TEXTS: u8 = 1;
/// `TextDocumentSyncKind`: a change carries a range and its new text.
const INCREMENTS: u8 = 2;

/// The authentication method that checks the configuration. Some clients call the first method before anything else and
/// give up if it fails, so this comes first, changes nothing, and fails only once a session is open.
const CONFIGURATION: &str = "configuration";
/// The one that runs `tandem acp --login` in a terminal.
const LOGIN: &str = "login";

/// What is known about the client.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that a client offers"
)]
pub(super) struct Client {
    /// The editor's process.
    process_id: Option<u32>,
    /// Whether it accepts `session/*` messages; otherwise it is an LSP-only client.
    pub speaks_acp: bool,
    /// Which optional parts of ACP it offers.
    pub offers: Offers,
    /// What it can do as the editor of a session.
    pub editor: Abilities,
    /// What it can do as a language client.
    pub can: Capabilities,
    /// Whether the cursor can be sent to the empty lines at the end of a document.
    pub shows_last_line: bool,
    /// Whether it opens a session for a plan.
    pub opens_sessions: bool,
    /// Whether it has models that tandem can use.
    pub has_models: bool,
    /// The URIs of the workspace folders.
    pub folders: Vec<String>,
}

impl Client {
    /// Whether the editor's process, if it named one, is still running.
    pub fn is_alive(&self) -> bool {
        self.process_id.is_none_or(runs)
    }

    /// The workspace folders.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().filter_map(|uri| file_of(uri))
    }
}

#[cfg(unix)]
fn runs(id: u32) -> bool {
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    id.is_none_or(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

/// On other systems the end of the input has to do.
#[cfg(not(unix))]
fn runs(_id: u32) -> bool {
    true
}

impl Server {
    pub fn initialize_lsp(&mut self, handshake: lsp::Handshake) -> Answer<Value> {
        let encoding = negotiate(&handshake);
        let sync = if shuffles_changes(&handshake) {
            WHOLE_TEXTS
        } else {
            INCREMENTS
        };
        let tandem = handshake.capability("experimental.tandem");
        let does = |what: &str| tandem.is_some_and(|tandem| tandem["_meta"][what] == true);
        let can = Capabilities::of(&handshake);
        self.client = Client {
            process_id: handshake.process_id,
            speaks_acp: tandem.is_some(),
            can,
            editor: Abilities {
                standard: can,
                label: handshake.client_info.name.contains("Code"),
                diagnostics: does("tandem.diagnostics"),
                rereads_within: rereads_within(&handshake),
                saves: does("tandem.save"),
                operations: tandem
                    .map(|tandem| operations(&tandem["_meta"]["tandem.language"]))
                    .unwrap_or_default(),
                files: tandem.map(FileAccess::of).unwrap_or_default(),
            },
            // Neovim drops empty lines at the end after an edit; `window/showDocument` then fails on a position in them.
            shows_last_line: !is_neovim(&handshake),
            opens_sessions: does("tandem.plan"),
            has_models: does("tandem.models"),
            folders: handshake.folders(),
            ..Client::default()
        };
        self.documents = Documents::new(encoding);
        self.options = handshake.initialization_options;
        self.phase = Phase::Serving;
        let mut capabilities = json!({
            "positionEncoding": encoding_name(encoding),
            "textDocumentSync": { "openClose": true, "change": sync, "save": { "includeText": false } },
            "workspace": workspace_capabilities(),
        });
        if self.client.can.completes_inline {
            self.load_completer();
        }
        if self.completer.is_some() {
            capabilities["inlineCompletionProvider"] = json!({});
        }
        if self.client.speaks_acp {
            capabilities["experimental"] = json!({ "tandem": acp_answer(self.client.offers) });
        } else {
            let kinds = json!({ "codeActionKinds": super::lsp::ACTION_KINDS });
            capabilities["codeActionProvider"] = if self.client.can.code_action_literals {
                kinds
            } else {
                true.into()
            };
            capabilities["completionProvider"] =
                json!({ "triggerCharacters": super::lsp::TRIGGERS });
            capabilities["executeCommandProvider"] = json!({ "commands": super::lsp::COMMANDS });
            capabilities["documentLinkProvider"] = json!({});
            if self.client.can.shows_lenses {
                capabilities["codeLensProvider"] = json!({});
            }
            for reads in ["definition", "documentSymbol", "foldingRange", "hover"] {
                capabilities[format!("{reads}Provider")] = true.into();
            }
        }
        Ok(json!({
            "capabilities": capabilities,
            "serverInfo": { "name": "tandem", "version": env!("CARGO_PKG_VERSION") },
        }))
    }

    pub fn initialize_acp(&mut self, params: Value) -> Answer<acp::InitializeResponse> {
        // Read leniently: a client of a later version learns which one tandem speaks, whatever else it sends.
        if !params.is_object() {
            return Err(invalid("params: expected an object with `protocolVersion`"));
        }
        let capabilities = &params["clientCapabilities"];
        let offers = Offers::of(capabilities);
        self.client = Client {
            speaks_acp: true,
            offers,
            editor: Abilities {
                files: FileAccess::of(capabilities),
                ..Abilities::default()
            },
            ..Client::default()
        };
        self.phase = Phase::Serving;
        Ok(acp_answer(offers))
    }

    /// Reports whether a model and its key are configured, else how to configure them. A client that asks after a login
    /// in a terminal learns whether it worked.
    pub fn authenticate(
        &mut self,
        acp::AuthenticateRequest { method_id, .. }: acp::AuthenticateRequest,
    ) -> Later<acp::AuthenticateResponse> {
        if ![CONFIGURATION, LOGIN].contains(&&*method_id.0) {
            let message =
                format!("unknown authentication method `{method_id}`; expected `{CONFIGURATION}`");
            return Err(invalid(message));
        }
        let needs_nothing = &*method_id.0 == CONFIGURATION && self.conversations.is_empty();
        let settings = self.load_settings(&[]);
        later(async move {
            if !needs_nothing {
                let ready = session::provider_or_local(&settings).await;
                ready.map_err(|why| failure(&why))?;
            }
            Ok(acp::AuthenticateResponse::new())
        })
    }

    /// `logout`: removes the keys that logins have stored.
    pub fn log_out(&mut self, _: IgnoredAny) -> Later<acp::LogoutResponse> {
        let settings = self.load_settings(&[]);
        later(async move {
            let removed = session::log_out(&settings, None).await;
            removed.map_err(|why| error(ErrorCode::RequestFailed, why))?;
            Ok(acp::LogoutResponse::new())
        })
    }

    /// At the start and after a change of the configuration: shows its problems, although sessions read settings only when
    /// they start and while they have no model, and removes what a killed process left in the workspace folders.
    pub fn check_workspace(&mut self) {
        let settings = self.load_settings(&[]);
        self.show_problems(&settings);
        for folder in self.client.folders() {
            self.tasks.spawn(async move {
                // Opening a workspace sweeps it. A folder that cannot be opened is reported when a session needs it.
                let _ = tokio::task::spawn_blocking(move || Root::open(&folder)).await;
            });
        }
    }
}

/// The changes to folders and files that the editor should report.
fn workspace_capabilities() -> Value {
    let files = json!([{ "scheme": "file", "pattern": { "glob": "**" } }]);
    json!({
        "workspaceFolders": { "supported": true, "changeNotifications": true },
        "fileOperations": { "didRename": { "filters": files } },
    })
}

/// Whether changes may arrive out of order: Helix before 25.07 sends each from a task of its own. Ranges are useless
/// then; full texts, of which the highest version counts, are not.
fn shuffles_changes(handshake: &lsp::Handshake) -> bool {
    let lsp::Client { name, version } = &handshake.client_info;
    let Some(version) = version.as_ref().filter(|_| name == "helix") else {
        return false;
    };
    let mut numbers = version
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) < (Some(25), Some(7))
}

fn is_neovim(handshake: &lsp::Handshake) -> bool {
    handshake.client_info.name == "Neovim"
}

/// How long an editor may take to read a file again; the plugin for Neovim does that when an edit comes.
fn rereads_within(handshake: &lsp::Handshake) -> Duration {
    let is_plugin = is_neovim(handshake) && handshake.capability("experimental.tandem").is_some();
    Duration::from_millis(if is_plugin { 0 } else { 700 })
}

/// UTF-8 if the client supports it, because tandem's texts are UTF-8; otherwise UTF-16, which every client supports.
fn negotiate(handshake: &lsp::Handshake) -> Encoding {
    let offered = handshake
        .capability("general.positionEncodings")
        .and_then(Value::as_array);
    let offers = |name: &str| offered.is_some_and(|names| names.iter().any(|offer| offer == name));
    if offers("utf-8") {
        Encoding::Utf8
    } else if offers("utf-32") && !offers("utf-16") {
        Encoding::Utf32
    } else {
        Encoding::Utf16
    }
}

fn encoding_name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Utf8 => "utf-8",
        Encoding::Utf16 => "utf-16",
        Encoding::Utf32 => "utf-32",
    }
}

fn acp_answer(offers: Offers) -> acp::InitializeResponse {
    let prompt = acp::PromptCapabilities::new()
        .image(true)
        .embedded_context(true);
    let session = acp::SessionCapabilities::new()
        .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new())
        .system_prompt(acp::SessionSystemPromptCapabilities::new())
        .list(acp::SessionListCapabilities::new())
        .delete(acp::SessionDeleteCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .fork(acp::SessionForkCapabilities::new())
        .close(acp::SessionCloseCapabilities::new());
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompt)
        .auth(acp::AgentAuthCapabilities::new().logout(acp::LogoutCapabilities::new()))
        .session_capabilities(session);
    acp::InitializeResponse::new(acp::ProtocolVersion::V1)
        .agent_capabilities(
            capabilities.mcp_capabilities(acp::McpCapabilities::new().http(true).acp(true)),
        )
        .auth_methods(auth_methods(offers))
        .agent_info(
            acp::Implementation::new("tandem", env!("CARGO_PKG_VERSION"))
                .title("tandem".to_owned()),
        )
}

fn auth_methods(offers: Offers) -> Vec<acp::AuthMethod> {
    let configuration = acp::AuthMethodAgent::new(CONFIGURATION, "Model and key").description(
        "There is no account. Run `tandem login` in a terminal, write the model into tandem's config.toml, or set a \
         provider's key in the environment of the agent. `tandem doctor` shows what is missing."
            .to_owned(),
    );
    let login = offers.terminal_login.then(|| {
        let login = acp::AuthMethodTerminal::new(LOGIN, "Log in in the terminal")
            .description("Choose a provider and a model, enter the key, and test it".to_owned());
        acp::AuthMethod::Terminal(login.args(vec!["--login".to_owned()]))
    });
    std::iter::once(acp::AuthMethod::Agent(configuration))
        .chain(login)
        .collect()
}
