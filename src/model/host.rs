//! What a provider's name says about its server: the fields it refuses, the echoes it wants.
//!
//! Known by the name of the provider, never by the address: a proxy in front of `mistral` behaves like Mistral.

use super::family::{Family, Known};
use super::{Api, Endpoint};

/// A provider whose server differs from what its dialect promises.
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
    Anthropic,
    /// A provider without rules of its own.
    Hosted,
    /// Anybody: a server on this machine, a proxy, a company's endpoint.
    Other,
}

impl Host {
    /// The host of a provider of this name.
    pub(super) fn named(provider: &str) -> Self {
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
            "zai" | "zhipuai" => Self::Zai,
            "anthropic" => Self::Anthropic,
            "together" | "cerebras" | "fireworks" | "nvidia" | "github" | "huggingface" | "bedrock" => Self::Hosted,
            _ => Self::Other,
        }
    }
}

/// What goes back of plain reasoning (`reasoning_content` and the like) in the chat dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    /// Nothing: the server refuses the fields. (Thoughts that came as content are content.)
    Never,
    /// What came, beside calls only: after a finished answer servers ignore or even refuse it.
    WithCalls,
    /// What came with every answer, and an empty `reasoning_content` beside calls that had none.
    Always,
}

impl Endpoint {
    /// Whether it is a server somebody runs for themselves: a model there has the window it was started with.
    pub(super) fn is_own_server(&self) -> bool {
        let local_row = matches!(self.provider.as_str(), "ollama" | "lmstudio" | "llamacpp" | "vllm");
        local_row || self.provider == "custom" && self.is_local()
    }

    /// Whether it may be one of the servers that people run on their machine, which have their own ways to say what they
    /// run.
    pub(super) fn may_be_own_server(&self) -> bool {
        self.is_local() && self.host() == Host::Other
    }

    /// Whether the list of models tells windows that beat what is generally known.
    pub(super) fn lists_windows(&self) -> bool {
        matches!(self.host(), Host::OpenRouter | Host::Groq | Host::Mistral | Host::Hosted | Host::Other)
    }

    pub(super) fn host(&self) -> Host {
        Host::named(&self.provider)
    }

    pub(super) fn known(&self) -> Known {
        Known::by_name(&self.model)
    }

    /// What goes back of plain reasoning.
    pub(super) fn echo(&self) -> Echo {
        let Known { family, .. } = self.known();
        match self.host() {
            Host::Groq | Host::Mistral => Echo::Never,
            Host::DeepSeek | Host::Moonshot => Echo::Always,
            Host::Hosted | Host::Other if matches!(family, Family::DeepSeek | Family::Kimi) => Echo::Always,
            _ => Echo::WithCalls,
        }
    }

    /// Whether calls have ids of nine letters and digits, and an assistant stands between `tool` and `user`. The models'
    /// own chat template checks that, so it holds wherever they run.
    pub(super) fn is_mistral(&self) -> bool {
        self.api == Api::Chat && (self.host() == Host::Mistral || self.known().family == Family::Mistral)
    }

    /// Whether a call without Gemini's signature is refused.
    pub(super) fn wants_signatures(&self) -> bool {
        self.api == Api::Chat && self.host() == Host::Google && self.known().family == Family::Gemini
    }

    /// Whether the conversation's name travels in the body, so that it meets its own cache.
    pub(super) fn has_cache_key(&self) -> bool {
        self.api == Api::Responses || self.api == Api::Chat && matches!(self.host(), Host::OpenAi | Host::Azure)
    }

    /// The header that keeps a conversation on the server that has its cache.
    pub(super) fn conversation_header(&self) -> Option<&'static str> {
        (self.api == Api::Chat && self.host() == Host::Xai).then_some("x-grok-conv-id")
    }

    /// Whether the cache has to be asked for in the chat dialect.
    pub(super) fn wants_cache_control(&self) -> bool {
        let family = self.known().family;
        self.host() == Host::OpenRouter && matches!(family, Family::Claude | Family::Qwen)
    }

    /// Whether the server takes `stream_options`. Mistral answers 422 to it, and sends the usage unasked.
    pub(super) fn takes_stream_options(&self) -> bool {
        self.host() != Host::Mistral
    }

    /// Whether the model refuses a temperature: those that reason do.
    pub(super) fn refuses_temperature(&self, thinks: bool) -> bool {
        let known = self.known();
        match known.family {
            Family::Gpt => known.at_least(5, 0),
            Family::OSeries => true,
            Family::Claude => thinks && self.api == Api::Messages,
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
