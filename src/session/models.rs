//! The model of a session, how it is chosen, and what each of its requests begins with.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::permission::Policy;
use super::store::{Held, Journal};
use super::{SessionId, Setup, Start, connect, environment, offers};
use crate::agent::{Entry, Explorers, prompt};
use crate::config::Settings;
use crate::domain::{Effort, ErrorCode, Failure, ToolKind};
use crate::model::{Endpoint, Instructions, Message, Preamble, Provider, ToolSpec};
use crate::process::Shell;
use crate::tools::Tool;
use crate::workspace::{Skill, Workspace};

pub(super) struct Models {
    id: SessionId,
    pub settings: Settings,
    workspace: Workspace,
    shell: Shell,
    skills: Arc<[Skill]>,
    pub provider: Result<Provider, Failure>,
    /// The models used before, for what their servers revealed.
    former: Vec<Provider>,
    /// The reasoning effort; `None` for the configured one.
    pub effort: Option<Effort>,
    /// The models to choose from: the configured ones, and the current one.
    pub choices: Arc<[String]>,
    /// Whether the history may be encoded for another model.
    is_stale: bool,
    /// Why the provider refused the key of the last prompt.
    pub refusal: Option<String>,
    pub tools: Arc<[Arc<dyn Tool>]>,
    /// What the client adds to the system prompt.
    instructions: String,
    /// The environment line of the system prompt; empty before the first prompt.
    pub environment: String,
    /// The beginning of each request: composed when it is needed, and again when something in it changed.
    preamble: Option<Preamble>,
    /// The search for a better model than the default one of a key.
    better: JoinSet<Option<Provider>>,
    /// A local server's evaluation of what the next request begins with.
    evaluating: JoinSet<()>,
}

impl Models {
    pub fn new(setup: &Setup, shell: Shell) -> Self {
        let mut models = Self {
            id: Arc::clone(&setup.id),
            settings: setup.settings.clone(),
            workspace: setup.workspace.clone(),
            shell,
            skills: Arc::clone(&setup.skills),
            provider: setup.provider.clone(),
            former: Vec::new(),
            effort: None,
            choices: [].into(),
            is_stale: false,
            refusal: None,
            tools: Arc::clone(&setup.tools),
            instructions: setup.instructions.clone(),
            environment: String::new(),
            preamble: None,
            better: JoinSet::new(),
            evaluating: JoinSet::new(),
        };
        models.changed();
        models.search(setup.start);
        models
    }

    /// Takes other settings, with the model they lead to.
    pub fn configure(
        &mut self,
        settings: Settings,
        provider: Result<Provider, Failure>,
        start: Start,
        journal: &mut Journal,
    ) {
        self.settings = settings;
        match provider {
            Ok(provider) => self.set(provider, self.effort, journal),
            Err(why) => {
                self.provider = Err(why);
                self.changed();
            }
        }
        self.search(start);
    }

    /// Takes other settings. The session's model stays, unless it used the configured one: then it uses the one they
    /// name.
    pub fn renew(&mut self, settings: Settings, start: Start, journal: &mut Journal) {
        let configured = self.settings.model.as_ref().ok().map(Endpoint::name);
        let chosen = self.name().filter(|name| Some(name) != configured.as_ref());
        let provider = match chosen {
            Some(name) => connect::provider_named(&settings, &name, self.effort),
            None => connect::provider(&settings),
        };
        self.configure(settings, provider, start, journal);
    }

    /// Searches for a better model than the default one of a key, if nobody chose a model.
    fn search(&mut self, start: Start) {
        self.better = JoinSet::new();
        if let Ok(provider) = &self.provider
            && self.settings.model_of_a_key().is_some()
            && start == Start::New
        {
            self.better.spawn(offers::better(provider.clone()));
        }
    }

    /// The model changed, or what its requests begin with.
    pub fn changed(&mut self) {
        self.preamble = None;
        let mut choices = self.settings.known_models();
        choices.extend(self.name().filter(|model| !choices.contains(model)));
        self.choices = choices.into();
    }

    /// `provider/model`, if there is one.
    pub fn name(&self) -> Option<String> {
        self.provider.as_ref().ok().map(Provider::name)
    }

    /// What the journal records with a prompt.
    pub fn held(&self, provider: &Provider) -> Held {
        Held {
            model: provider.name(),
            effort: self.effort,
        }
    }

    /// The model for the next request, and whether the history may be encoded for another one.
    pub fn ready(&mut self) -> Result<(Provider, bool), Failure> {
        let mut provider = self.provider.clone()?;
        if let Some(switched) = provider.switched() {
            provider = switched;
            self.provider = Ok(provider.clone());
            self.is_stale = true;
            self.changed();
        }
        Ok((provider, std::mem::take(&mut self.is_stale)))
    }

    /// The beginning of requests to the current model.
    pub fn beginning(&mut self, provider: &Provider, policy: &Policy) -> Preamble {
        let preamble = self.preamble.get_or_insert_with(|| {
            let (workspace, tools) = (&self.workspace, &self.tools);
            let mut system = prompt::system(provider, workspace, tools, &self.environment);
            prompt::append(&mut system, &self.instructions);
            preamble(provider, &self.id, system, tools, policy)
        });
        preamble.clone()
    }

    /// Another model from the next turn on, by `provider/model`.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn choose(
        &mut self,
        name: &str,
        effort: Option<Effort>,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let provider = connect::provider_named(&self.settings, name, effort)?;
        self.set(provider, effort, journal);
        Ok(())
    }

    /// Answers `/model`.
    pub fn command(&mut self, name: &str, journal: &mut Journal) -> String {
        if !name.is_empty() {
            return match self.choose(name, self.effort, journal) {
                Ok(()) => format!("Switched to {name}, from the next prompt on."),
                Err(why) => why.message,
            };
        }
        let current = self.name();
        let mut text = "Configured models:\n\n".to_owned();
        for name in &*self.choices {
            let is_current = current.as_ref() == Some(name);
            let mark = if is_current { " (in use)" } else { "" };
            text += &format!("- {name}{mark}\n");
        }
        text + "\n`/model NAME` switches."
    }

    /// Another model from the next turn on. What only the previous one understands (its reasoning) is dropped.
    fn set(&mut self, provider: Provider, effort: Option<Effort>, journal: &mut Journal) {
        self.effort = effort;
        self.refusal = None;
        journal.held(self.held(&provider));
        self.tools = connect::offered(
            &provider.endpoint().model,
            self.shell.dialect(),
            &self.workspace,
            &self.skills,
        );
        if let Ok(before) = &self.provider {
            self.former.retain(|former| former.name() != before.name());
            self.former.push(before.clone());
        }
        let provider = self
            .former
            .iter()
            .fold(journal.teach(provider), Provider::remembering);
        self.provider = Ok(provider);
        self.is_stale = true;
        self.changed();
    }

    /// Continues with the model of a saved session; else returns why another one is used.
    pub fn resume(&mut self, saved: Held, journal: &mut Journal) -> Result<(), String> {
        let Held {
            model: name,
            effort,
        } = saved;
        let current = self.name();
        if current.as_ref() == Some(&name) && effort.is_none() {
            return Ok(());
        }
        self.choose(&name, effort, journal).map_err(|why| {
            let instead = current
                .map(|current| format!(", so {current} continues"))
                .unwrap_or_default();
            format!(
                "this session used {name}, which is not available{instead}: {}",
                why.message
            )
        })
    }

    /// Chooses the model for the next prompt, if nobody chose one.
    pub async fn look(&mut self, journal: &mut Journal) {
        if let Some(Ok(Some(provider))) = self.better.join_next().await {
            self.set(provider, self.effort, journal);
        }
        self.look_for_a_server().await;
        self.ask_for_the_window().await;
    }

    /// With nothing configured, a local model server is used, even one that was started only now.
    pub async fn look_for_a_server(&mut self) {
        let is_missing = |why: &Failure| why.code == ErrorCode::NoModel;
        if self.settings.names_no_model() && self.provider.as_ref().is_err_and(is_missing) {
            self.provider = connect::provider_or_local(&self.settings).await;
            self.changed();
        }
    }

    /// A small window gets a short system prompt, in every process of a session the same.
    pub async fn ask_for_the_window(&mut self) {
        if let Ok(provider) = &self.provider
            && provider.learn_early().await
        {
            self.changed();
        }
    }

    /// Composes the environment line, unless this session has one.
    pub async fn look_around(&mut self) {
        if self.environment.is_empty() {
            self.environment = environment::describe(&self.shell, &self.workspace).await;
            self.changed();
        }
    }

    /// While the person types, a local server evaluates what the next request begins with. It costs nothing there, and
    /// the first word comes sooner: a laptop needs seconds, or minutes, to read the instructions, the tools and the
    /// session. Once for each prompt, which ends it.
    pub async fn evaluate(&mut self, provider: Provider, history: &[Arc<Entry>], policy: &Policy) {
        self.look_around().await;
        let preamble = self.beginning(&provider, policy);
        let mut messages: Vec<_> = history
            .iter()
            .map(|entry| entry.encoded().clone())
            .collect();
        // Some templates refuse a session in which the person says nothing.
        messages.push(provider.encode(&Message::text("…")));
        self.evaluating
            .spawn(async move { provider.evaluate(&preamble.instructions, messages).await });
    }

    pub fn is_evaluating(&self) -> bool {
        !self.evaluating.is_empty()
    }

    /// A prompt begins: the server is free for it.
    pub fn stop_evaluating(&mut self) {
        self.evaluating = JoinSet::new();
    }

    /// The explorers of a turn: their model, and the session's own tools that read.
    pub fn explorers(&self, provider: &Provider, policy: &Policy) -> Arc<Explorers> {
        let explore = &self.settings.explore;
        let provider = match &explore.model {
            Some(name) => connect::provider_named(&self.settings, name, None)
                .map_err(|why| format!("explore.model: {}", why.message)),
            None => Ok(provider.clone()),
        };
        let mut tools = self.tools.to_vec();
        tools.retain(|tool| matches!(tool.kind(), ToolKind::Read | ToolKind::Search));
        let tools: Arc<[_]> = tools.into();
        let model = provider.map(|provider| {
            let system = prompt::explorer(&self.workspace, explore.bounds);
            let id = format!("{}-explore", self.id).into();
            let preamble = preamble(&provider, &id, system, &tools, policy);
            (provider, preamble)
        });
        Explorers::new(model, tools, explore.bounds)
    }
}

/// The bytes at the beginning of every request in the session `id` with those of these tools that the `policy` does not
/// forbid.
pub(super) fn preamble(
    provider: &Provider,
    id: &SessionId,
    system: String,
    tools: &[Arc<dyn Tool>],
    policy: &Policy,
) -> Preamble {
    let listed = tools.iter().filter(|tool| !policy.forbids(&***tool));
    let spec = |tool: &Arc<dyn Tool>| ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters: tool.parameters(),
        streams: tool.kind() == ToolKind::Edit,
    };
    provider.preamble(&Instructions {
        system,
        tools: listed.map(spec).collect(),
        conversation: Arc::clone(id),
    })
}
