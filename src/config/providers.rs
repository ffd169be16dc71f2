//! The providers that need no configuration but a key. One row each; everything can be changed in `[providers.NAME]`.

use super::options::Api;

/// What is known of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Its name before the slash of `provider/model`.
    pub name: &'static str,
    /// Its dialect.
    pub api: Api,
    /// Where it is reached; empty where every customer has an own address.
    pub base_url: &'static str,
    /// The well-known variable of its key; empty for local servers.
    pub key_variable: &'static str,
    /// The model that is used when nothing but the key is there; empty where the server has to be asked.
    pub default_model: &'static str,
    /// Fields of ours that its server refuses; a `body` in the configuration can bring them back.
    pub refuses: &'static [&'static str],
    /// What it calls the limit of an answer, where its chat dialect has a word of its own.
    pub max_tokens: Option<&'static str>,
}

impl Provider {
    /// Whether it is a server on this machine, which needs no key.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.key_variable.is_empty()
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }
}

const fn hosted(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    default_model: &'static str,
) -> Provider {
    Provider { name, api: Api::Chat, base_url, key_variable, default_model, refuses: &[], max_tokens: None }
}

const fn local(name: &'static str, base_url: &'static str) -> Provider {
    hosted(name, base_url, "", "")
}

/// All of them; where several keys are set, the first one in this order is used.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        max_tokens: Some("max_completion_tokens"),
        ..hosted("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.1")
    },
    Provider {
        api: Api::Messages,
        ..hosted("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-4-6")
    },
    hosted("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "anthropic/claude-sonnet-4.6"),
    hosted("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", "gemini-2.5-pro"),
    hosted("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
    // It answers 422 to fields it does not know, and sends the usage unasked.
    Provider {
        refuses: &["stream_options"],
        ..hosted("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-large-latest")
    },
    hosted("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b"),
    hosted("xai", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4"),
    hosted("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "openai/gpt-oss-120b"),
    Provider { max_tokens: Some("max_completion_tokens"), ..hosted("azure", "", "AZURE_OPENAI_API_KEY", "") },
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
    local("llamacpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
];
