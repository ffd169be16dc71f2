//! Types about models that all modules share: reasoning effort, token usage, errors.

use serde::{Deserialize, Serialize};

/// A reasoning effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning, if the model supports that.
    None,
    /// The shortest reasoning.
    Minimal,
    /// Short.
    Low,
    /// The usual length.
    Medium,
    /// Long.
    High,
    /// Longer.
    Xhigh,
    /// The longest.
    Max,
}

impl Effort {
    /// All efforts, lowest first.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The fields of a request that express one.
    pub const FIELDS: [&str; 4] = ["reasoning_effort", "reasoning", "thinking", "output_config"];

    /// Its name, as most providers have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The effort of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == name)
    }

    /// Its name in a menu.
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Minimal => "Minimal",
            Self::Low => "Low",
            Self::Medium => "Medium",
            Self::High => "High",
            Self::Xhigh => "Extra high",
            Self::Max => "Maximum",
        }
    }
}

/// A model's name without the date of its snapshot, `-20250929` or `-2025-08-07`.
pub fn without_date(name: &str) -> &str {
    let date = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    match name.rsplit_once('-') {
        Some((rest, day)) if date(day, 8) => rest,
        Some((rest, day)) if date(day, 2) => {
            match rest
                .rsplit_once('-')
                .map(|(rest, month)| (rest.rsplit_once('-'), month))
            {
                Some((Some((rest, year)), month)) if date(month, 2) && date(year, 4) => rest,
                _ => name,
            }
        }
        _ => name,
    }
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included, on every API.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Tokens of `input` that came from the provider's cache.
    pub cached: u64,
    /// Tokens of `input` that were written into the cache, if the provider reports it.
    pub written: u64,
    /// Tokens of `output` that were reasoning.
    pub reasoning: u64,
    /// US dollars, if the provider reports them or prices are known.
    pub cost: Option<f64>,
}

impl Usage {
    /// Adds the usage of another request.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
        self.written += other.written;
        self.reasoning += other.reasoning;
        self.cost = match (self.cost, other.cost) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default() + other.unwrap_or_default()),
        };
    }
}

/// The values of `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Nothing is configured.
    NoModel,
    /// The key is missing or refused.
    Auth,
    /// Too many requests, or no credit left.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The request exceeds the model's context window.
    ContextOverflow,
    /// The endpoint could not be reached.
    Network,
    /// It did not answer in time.
    Timeout,
    /// The stream ended without its terminator.
    Truncated,
    /// The model does not take images, or not these.
    ImagesRefused,
    /// The provider did not accept the request.
    InvalidRequest,
    /// A bug in tandem.
    Internal,
}

/// Why a request to a model, a turn or a prompt failed.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The cause, which may be in the provider's words, and the way out.
    pub message: String,
    /// The kind.
    pub code: ErrorCode,
    /// The HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same may work later.
    pub retryable: bool,
}

impl Failure {
    /// A failure without an HTTP status that a retry would not change.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code,
            status: None,
            retryable: false,
        }
    }

    /// The same, but it may work later.
    pub fn passing(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            retryable: true,
            ..Self::new(code, message)
        }
    }
}
