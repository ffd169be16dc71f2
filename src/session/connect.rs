//! Builds the parts of a session from settings: the model's endpoint, the rules, the limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::permission::remembered::Remembered;
use super::permission::{Policy, Rule, exact_rules};
use super::{SessionId, store};
use crate::changes::images;
use crate::config::{self, McpServer, Mode, Problem, Settings};
use crate::domain::{Failure, Limits, distrust_programs_in, outside_workspaces};
use crate::model::{Api, Effort, Endpoint, ErrorCode, Key, Known, ModelInfo, Provider, TimeLimits};
use crate::process::{Dialect, Surroundings};
use crate::tools::{self, Editing, Redactor, Tool, mcp};
use crate::workspace::{Editor, Skill, Workspace, native, skills};

/// Everything a session is made of.
pub struct Setup {
    /// Its name.
    pub id: SessionId,
    /// The model, or why there is none.
    pub provider: Result<Provider, Failure>,
    /// The files.
    pub workspace: Workspace,
    /// The client's addition to the system prompt.
    pub instructions: String,
    /// The tools the model is offered.
    pub tools: Arc<[Arc<dyn Tool>]>,
    /// The skills it can load.
    pub skills: Arc<[Skill]>,
    /// The source of further tools.
    pub servers: mcp::Servers,
    /// How long the first prompt waits for them.
    pub server_timeout: Duration,
    /// The mode it starts in.
    pub mode: Mode,
    /// The rules of the configuration.
    pub policy: Policy,
    /// Whether the MCP servers of other agents are offered for import.
    pub offers_import: bool,
    /// The rules allowed for this project in earlier sessions; `None` if nothing is stored.
    pub remembered: Option<Remembered>,
    /// Values that must not reach a model, a client or a file.
    pub secrets: Redactor,
    /// The limits of its turns.
    pub limits: Limits,
    /// The folder for previous versions; `None` for none.
    pub checkpoints: Option<PathBuf>,
    /// The folder of its journal; `None` for none.
    pub journal: Option<PathBuf>,
    /// How it starts.
    pub start: Start,
    /// The session it is a copy of.
    pub original: Option<SessionId>,
    /// The chat file that shows it.
    pub chat: Option<PathBuf>,
    /// Whether a resumed session continues in its own mode rather than in `mode`.
    pub keeps_mode: bool,
    /// Whether it continues with its own model rather than with `provider`.
    pub keeps_model: bool,
    /// The settings it was made from: other models, the person's commands.
    pub settings: Settings,
    /// The folder of the person's own `AGENTS.md`.
    pub own_files: Option<PathBuf>,
    /// The environment of its commands.
    pub surroundings: Surroundings,
}

/// How a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Empty.
    New,
    /// Resumed under the same id: [`crate::agent::event::AgentEvent::Resumed`] reports success,
    /// [`crate::agent::event::AgentEvent::Error`] failure.
    Resume,
    /// Resumed, with its history replayed.
    Replay,
    /// As a copy of another one, which [`Setup::original`] names.
    Fork,
}

/// A unique id: start time, process id and a counter.
pub fn new_id() -> SessionId {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count}", now.as_millis(), std::process::id()).into()
}

/// A session on `workspace` with these settings.
pub fn setup(id: SessionId, start: Start, settings: &Settings, workspace: Workspace) -> Setup {
    let rules = &settings.permissions;
    // A command configured for the end of each turn counts as approved.
    let mut allow = rules.allow.clone();
    if let Some(command) = &settings.finish.command {
        let dialect = surroundings(settings).shell().dialect;
        allow.extend(exact_rules(tools::COMMAND, command, dialect));
    }
    let roots: Vec<_> = workspace
        .roots()
        .iter()
        .map(|root| root.path().to_owned())
        .collect();
    let remembered = remembered(settings, &workspace);
    let mut own = own(settings);
    own.retain(|path| {
        workspace
            .roots()
            .iter()
            .any(|root| path.starts_with(root.real()))
    });
    let own_files = settings
        .config_file()
        .and_then(|file| file.parent().map(Path::to_owned));
    let skills = skills::find(own_files.as_deref(), &workspace).into();
    let model = settings.model.as_ref().map_or("", |model| &*model.model);
    let surroundings = surroundings(settings);
    let secrets = settings.redactor();
    let servers = mcp_servers(settings, &roots, &secrets, workspace.editor());
    Setup {
        id,
        provider: provider(settings),
        tools: offered(model, surroundings.shell().dialect, &workspace, &skills),
        skills,
        instructions: String::new(),
        workspace,
        servers: mcp::Servers::new(servers, settings.command_timeout, secrets.clone()),
        server_timeout: settings.connect_timeout,
        offers_import: false,
        mode: settings.mode,
        policy: Policy::new(&allow, &rules.ask, &rules.deny)
            .fail_closed(settings.lacks_restrictions)
            .guarding(own),
        remembered,
        secrets,
        limits: settings.limits,
        checkpoints: settings.state_dir.as_deref().map(images::folder),
        journal: settings.state_dir.as_deref().map(store::folder),
        start,
        original: None,
        chat: None,
        keeps_mode: true,
        keeps_model: true,
        settings: settings.clone(),
        own_files,
        surroundings,
    }
}

/// tandem's own files and folders, which may be links into a dotfiles repository.
fn own(settings: &Settings) -> Vec<PathBuf> {
    let own = settings.state_dir.clone().into_iter();
    let own = own.chain(settings.config_file());
    own.filter_map(|path| {
        let real = native::canonical(&path).ok();
        real.or_else(|| native::canonical_folder(&path))
    })
    .collect()
}

/// The environment of a session's commands.
pub fn surroundings(settings: &Settings) -> Surroundings {
    let environment = settings.environment();
    Surroundings {
        variables: environment.for_commands(),
        program: environment.program().map(Path::to_owned),
        state: settings.state_dir.clone(),
        session: None,
        hidden: own(settings),
        timeout: Some(settings.command_timeout),
    }
}

/// The configured MCP servers, for a workspace with these folders.
///
/// A configured program runs in the home directory unless its `cwd` says otherwise: in the workspace, a repository
/// could shadow it. The tokens of logins are added to `secrets`.
pub fn mcp_servers(
    settings: &Settings,
    roots: &[PathBuf],
    secrets: &Redactor,
    editor: &Arc<dyn Editor>,
) -> Vec<mcp::Server> {
    for root in roots {
        distrust_programs_in(root);
    }
    let state = settings.state_dir.as_deref();
    let vault = mcp::Vault::new(state, settings.has_keyring());
    let environment = settings.environment();
    let home = environment.home().filter(|home| home.is_dir());
    let home = home.unwrap_or(Path::new("/"));
    let mut inherited = environment.harmless();
    if let Some(path) = inherited.get_mut("PATH") {
        *path = outside_workspaces(path, home);
    }
    let way = |name: &str, server: &McpServer| match server {
        McpServer::Command { command, env, cwd } => {
            let mut environment = inherited.clone();
            environment.extend(env.clone());
            let workspace = roots.first().map_or(home, PathBuf::as_path);
            let folder = cwd
                .as_ref()
                .map_or_else(|| home.to_owned(), |cwd| workspace.join(cwd));
            mcp::Way::Command {
                words: command.words().to_vec(),
                environment,
                folder,
            }
        }
        McpServer::Url {
            url,
            headers,
            client_id,
            client_secret,
            is_supplied,
        } => {
            let registered = mcp::Registered {
                id: client_id.clone(),
                secret: client_secret.clone(),
                is_supplied: *is_supplied,
            };
            let login = mcp::Login::new(name, url, registered, vault.clone(), secrets.clone());
            mcp::Way::Url(mcp::Address {
                url: url.clone(),
                headers: headers.clone(),
                // A bad address is reported when connecting.
                login: login.ok().map(Arc::new),
            })
        }
        McpServer::Editor { id } => mcp::Way::Editor {
            id: id.clone(),
            editor: Arc::clone(editor),
        },
    };
    let server = |(name, server): (&String, &McpServer)| {
        mcp::Server::new(name, way(name, server), roots, state)
    };
    settings.mcp.iter().map(server).collect()
}

/// The stored permissions for the first folder of `workspace`.
fn remembered(settings: &Settings, workspace: &Workspace) -> Option<Remembered> {
    Some(Remembered::of(
        settings.state_dir.as_ref()?,
        workspace.roots().first()?.real(),
    ))
}

/// Problems with the permission rules, with their locations.
pub fn rule_problems(settings: &Settings) -> Vec<Problem> {
    let config::Permissions { allow, ask, deny } = &settings.permissions;
    let mut problems = Vec::new();
    for (list, rules) in [("allow", allow), ("ask", ask), ("deny", deny)] {
        for (index, rule) in rules.iter().enumerate() {
            let problem = match Rule::parse(rule) {
                Err(problem) => Some(problem),
                Ok(rule) if list == "allow" => rule.futile(),
                Ok(_) => None,
            };
            let place = || settings.rule_place(list, index);
            problems.extend(problem.map(|message| Problem {
                place: place(),
                key: format!("permissions.{list}"),
                message,
                hides_restrictions: list != "allow",
            }));
        }
    }
    // A repository may have written thousands.
    problems.truncate(100);
    problems
}

/// The configured model.
///
/// # Errors
/// No model is configured, or its key is missing.
pub fn provider(settings: &Settings) -> Result<Provider, Failure> {
    ready(settings, settings.model.clone()?).map(Provider::http)
}

/// The configured model, or with nothing configured one of a local server.
///
/// # Errors
/// There is none, or its key is missing.
pub async fn provider_or_local(settings: &Settings) -> Result<Provider, Failure> {
    match provider(settings) {
        Err(why) if settings.names_no_model() => local(settings, why).await,
        configured => configured,
    }
}

/// Another model of the settings, by `provider/model`, with this effort (`None`: as configured).
///
/// # Errors
/// It is not configured, or its key is missing.
pub fn provider_named(
    settings: &Settings,
    name: &str,
    effort: Option<Effort>,
) -> Result<Provider, Failure> {
    let endpoint = ready(settings, settings.model_named(name)?)?;
    Ok(Provider::http(match effort {
        Some(effort) => endpoint.with_effort(effort),
        None => endpoint,
    }))
}

/// The tools offered to the model of this name, whoever serves it (`openai/gpt-5`).
pub(super) fn offered(
    model: &str,
    dialect: Dialect,
    workspace: &Workspace,
    skills: &Arc<[Skill]>,
) -> Arc<[Arc<dyn Tool>]> {
    let editing = if Known::by_name(model).patches() {
        Editing::Patches
    } else {
        Editing::Replacements
    };
    tools::offered(editing, dialect, workspace, skills)
}

/// The model with the editor, if it is one of the editor's own.
///
/// # Errors
/// Its key is missing, or the editor has no models.
pub(super) fn ready(settings: &Settings, model: Endpoint) -> Result<Endpoint, Failure> {
    let editor = settings
        .editor_models
        .clone()
        .filter(|_| model.base_url == config::EDITOR);
    if editor.is_none() && model.base_url == config::EDITOR {
        let message = "the models of VS Code work only in VS Code 1.95 or later, in tandem's extension; choose another \
                       model here";
        return Err(Failure::new(ErrorCode::NoModel, message));
    }
    if let Key::Missing { name } = &model.key {
        let message = format!(
            "{} needs a key: run `tandem login`, or set the environment variable {name}",
            model.name()
        );
        return Err(Failure::new(ErrorCode::Auth, message));
    }
    Ok(Endpoint { editor, ..model })
}

/// The first model of a local server, as its provider is configured. Another user's server is used only once a person
/// has chosen it in the setup or named its model, because that user can read what is sent to it.
///
/// # Errors
/// There is none.
async fn local(settings: &Settings, why: Failure) -> Result<Provider, Failure> {
    let chats = |model: &ModelInfo| !model.is_other;
    let mut foreign = None;
    for server in crate::model::detect().await {
        let Some(model) = server.models.into_iter().find(chats) else {
            continue;
        };
        let name = format!("{}/{}", server.name, model.id);
        if let Some(owner) = server.owner {
            foreign.get_or_insert((server.name, name, server.base_url, owner));
            continue;
        }
        let configured = settings
            .model_named(&name)
            .ok()
            .and_then(|model| ready(settings, model).ok());
        let endpoint = configured.unwrap_or_else(|| Endpoint {
            limits: TimeLimits {
                first_byte: None,
                ..TimeLimits::default()
            },
            ..Endpoint::new(server.name, Api::Chat, "", &model.id)
        });
        // Its window is asked for before the first request, and warned of if it is small: nobody configured it.
        return Ok(Provider::http(Endpoint {
            base_url: server.base_url,
            ..endpoint
        }));
    }
    Err(match foreign {
        Some((server, name, url, owner)) => Failure {
            message: format!(
                "the server at {url} runs as user `{owner}`, who could read your code, so tandem uses it only if you \
                 choose it. Do one of these:\n- if you trust `{owner}`, choose it in your editor's setup or with \
                 `tandem login {server}`, or set `model = \"{name}\"`\n{}",
                why.message.split_once('\n').unwrap_or_default().1
            ),
            ..why
        },
        None => why,
    })
}
