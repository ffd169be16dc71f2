//! Differences between providers' servers: fields they refuse, reasoning they want back.
//!
//! Identified by the provider's name, never by address: a proxy in front of `mistral` behaves like Mistral.

use serde_json::Value;

use super::family::{Family, Known};
use super::{Api, AssistantMessage, Endpoint, ReasoningItem};

/// A provider whose server differs from its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    OpenAi,
    Azure,
    OpenRouter,
    /// Google's compatible endpoints: the Gemini API and Vertex.
    Google,
    DeepSeek,
    Moonshot,
    Mistral,
    Groq,
    Xai,
    Zai,
    /// Alibaba Cloud's compatible endpoint.
    DashScope,
    /// Vercel's gateway.
    Vercel,
    Anthropic,
    /// A provider without special rules.
    Hosted,
    /// Unknown: a local server, a proxy, a company's endpoint.
    Other,
}

impl Host {
    /// The host for a provider's name.
    pub fn named(provider: &str) -> Self {
        match provider {
            "openai" => Self::OpenAi,
            "azure" => Self::Azure,
            "openrouter" => Self::OpenRouter,
            "gemini" | "google" | "vertex" => Self::Google,
            "deepseek" => Self::DeepSeek,
            "moonshot" | "moonshotai" | "kimi" => Self::Moonshot,
            "mistral" => Self::Mistral,
            "groq" => Self::Groq,
            "xai" => Self::Xai,
            "zai" | "zai-coding" | "zhipuai" => Self::Zai,
            "dashscope" => Self::DashScope,
            "vercel" => Self::Vercel,
            "anthropic" => Self::Anthropic,
            "together" | "cerebras" | "fireworks" | "nvidia" | "github" | "huggingface"
            | "bedrock" | "minimax" | "kimi-coding" | "opencode" => Self::Hosted,
            _ => Self::Other,
        }
    }
}

/// Which plain reasoning (`reasoning_content` and similar) is sent back in the chat API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    /// None: the server refuses the fields. (Reasoning that arrived as content is content.)
    Never,
    /// Reasoning that came with calls: after a final answer, servers ignore or even refuse it.
    WithCalls,
    /// All reasoning.
    Everything,
    /// All reasoning, with an empty `reasoning_content` for calls without any.
    Always,
}

impl AssistantMessage {
    /// The reasoning that is sent back: only the model that produced it understands it.
    pub(super) fn items_for(&self, endpoint: &Endpoint) -> Vec<&Value> {
        let ours = self.reasoning.iter();
        ours.filter(|item| item.belongs_to(endpoint))
            .map(|item| &item.item)
            .collect()
    }
}

impl ReasoningItem {
    /// Whether it may go back to this endpoint: encrypted reasoning belongs to a model, and to the account it was made for.
    pub(super) fn belongs_to(&self, endpoint: &Endpoint) -> bool {
        let same_provider = self.provider.is_empty() || self.provider == endpoint.provider;
        self.api == endpoint.api && self.model == endpoint.model && same_provider
    }
}

impl Endpoint {
    /// Whether it is a self-hosted server: a model there has the window it was started with.
    pub fn is_own_server(&self) -> bool {
        self.is_local_row() || self.provider == "custom" && self.is_local()
    }

    /// Whether its provider is one of the usual local servers, which end no answer by themselves.
    pub fn is_local_row(&self) -> bool {
        matches!(
            self.provider.as_str(),
            "ollama" | "lmstudio" | "llamacpp" | "vllm"
        )
    }

    /// Whether it may be one of the usual local servers, which have their own APIs to report what they run.
    pub(super) fn may_be_own_server(&self) -> bool {
        self.is_local() && self.host() == Host::Other
    }

    /// Whether the list of models has windows that override the built-in ones.
    pub(super) fn lists_windows(&self) -> bool {
        matches!(
            self.host(),
            Host::OpenRouter
                | Host::Groq
                | Host::Mistral
                | Host::Vercel
                | Host::Hosted
                | Host::Other
        )
    }

    pub(super) fn host(&self) -> Host {
        Host::named(&self.provider)
    }

    pub(super) fn known(&self) -> Known {
        Known::by_name(&self.model)
    }

    /// Which plain reasoning is sent back.
    pub(super) fn echo(&self) -> Echo {
        let Known { family, .. } = self.known();
        match self.host() {
            Host::Groq | Host::Mistral => Echo::Never,
            Host::DeepSeek | Host::Moonshot => Echo::Always,
            Host::Hosted | Host::Other if matches!(family, Family::DeepSeek | Family::Kimi) => {
                Echo::Always
            }
            Host::Zai => Echo::Everything,
            _ if self.template_switch().is_some() => Echo::Everything,
            _ => Echo::WithCalls,
        }
    }

    /// What makes the chat template of a self-hosted model keep the thoughts of earlier turns.
    pub(super) fn template_switch(&self) -> Option<(&'static str, bool)> {
        let known = self.known();
        let takes_it = matches!(self.provider.as_str(), "llamacpp" | "vllm" | "custom");
        match known.family {
            _ if !takes_it || !self.is_own_server() || self.api != Api::Chat => None,
            Family::Qwen if known.at_least(3, 6) => Some(("preserve_thinking", true)),
            Family::Glm if known.at_least(4, 7) => Some(("clear_thinking", false)),
            _ => None,
        }
    }

    /// Whether it is one of OpenAI's models that bill what they write into the cache, take marks of where to write, and
    /// keep the reasoning of earlier turns if asked to.
    pub(super) fn knows_cache_writes(&self) -> bool {
        let known = self.known();
        let is_new = known.has_version() && known.at_least(5, 6);
        self.api == Api::Responses && known.family == Family::Gpt && is_new
    }

    /// How long OpenAI keeps the cache of older models, if it takes that.
    pub(super) fn cache_retention(&self) -> Option<&'static str> {
        let known = self.known();
        let takes_it = known.family == Family::Gpt && known.at_least(4, 1);
        (self.host() == Host::OpenAi && takes_it && !known.at_least(5, 6)).then_some("24h")
    }

    /// Whether call ids must be nine letters and digits, and an assistant message must come between `tool` and `user`.
    /// The models' own chat template checks that, so it applies wherever they run.
    pub(super) fn is_mistral(&self) -> bool {
        self.api == Api::Chat
            && (self.host() == Host::Mistral || self.known().family == Family::Mistral)
    }

    /// The longest id of a call, in bytes.
    pub(super) fn longest_id(&self) -> usize {
        match (self.api, self.host()) {
            (Api::Responses, _) => 64,
            (Api::Chat, Host::OpenAi | Host::Azure | Host::Hosted) => 40,
            (Api::Chat | Api::Messages, _) => usize::MAX,
        }
    }

    /// Whether calls require Gemini's signature.
    pub(super) fn wants_signatures(&self) -> bool {
        self.api == Api::Chat
            && self.host() == Host::Google
            && self.known().family == Family::Gemini
    }

    /// Whether the conversation's id is sent in the body, to hit its own cache.
    pub(super) fn has_cache_key(&self) -> bool {
        self.api == Api::Responses
            || self.api == Api::Chat && matches!(self.host(), Host::OpenAi | Host::Azure)
    }

    /// Whether the conversation's id keeps it with the host that has its cache.
    pub(super) fn has_session_id(&self) -> bool {
        self.host() == Host::OpenRouter
    }

    /// The header that routes a conversation to the server with its cache.
    pub(super) fn conversation_header(&self) -> Option<&'static str> {
        (self.api == Api::Chat && self.host() == Host::Xai).then_some("x-grok-conv-id")
    }

    /// Whether caching has to be requested in the chat API.
    pub(super) fn wants_cache_control(&self) -> bool {
        let family = self.known().family;
        self.host() == Host::OpenRouter && matches!(family, Family::Claude | Family::Qwen)
    }

    /// Whether the configuration enables Anthropic's one-hour prompt cache.
    pub(super) fn caches_for_an_hour(&self) -> bool {
        let control = self.body.get("cache_control");
        control.is_some_and(|control| control["ttl"] == "1h")
    }

    /// Whether the gateway adds cache markers for models that require them.
    pub(super) fn marks_caches(&self) -> bool {
        self.host() == Host::Vercel
    }

    /// Whether the server accepts `stream_options`. Mistral answers 422, and sends usage anyway.
    pub(super) fn takes_stream_options(&self) -> bool {
        self.host() != Host::Mistral
    }

    /// Whether the model refuses a temperature, as reasoning models do.
    pub(super) fn refuses_temperature(&self, thinks: bool) -> bool {
        let known = self.known();
        match known.family {
            Family::Gpt => known.at_least(5, 0),
            Family::OSeries => true,
            Family::Kimi => known.at_least(2, 5),
            Family::Claude => thinks || known.at_least(5, 0),
            _ => false,
        }
    }

    /// The field that limits an answer.
    pub(super) fn limit_field(&self) -> &'static str {
        match (self.api, self.host()) {
            (Api::Responses, _) => "max_output_tokens",
            (Api::Chat, Host::OpenAi | Host::Azure) => "max_completion_tokens",
            (Api::Chat | Api::Messages, _) => "max_tokens",
        }
    }
}
