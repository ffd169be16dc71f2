//! Values as servers really send them: a field of the wrong type counts as absent instead of failing the stream.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Usage;

/// A number of tokens; an impossible one counts as absent, so that sums don't overflow.
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count < 1 << 40)
}

/// Token counts, by each provider's names for them; `None` if there are none.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let number = |pointers: &[&str]| {
        let mut counts = pointers.iter().filter_map(|pointer| usage.pointer(pointer));
        counts.find_map(count)
    };
    let input = number(&["/prompt_tokens", "/input_tokens"]);
    let output = number(&["/completion_tokens", "/output_tokens"]);
    (input.is_some() || output.is_some()).then(|| Usage {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        cached: number(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ])
        .unwrap_or_default(),
        written: number(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/input_tokens_details/cache_write_tokens",
        ])
        .unwrap_or_default(),
        reasoning: number(&[
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
            "/reasoning_tokens",
        ])
        .unwrap_or_default(),
        cost: usage["cost"].as_f64(),
    })
}

/// Text, borrowed from the input wherever it has no escapes. Anything that is not text counts as empty.
#[derive(Debug, Default)]
pub(super) enum Text<'a> {
    /// `null`, absent, or no text.
    #[default]
    Empty,
    /// A string.
    Plain(Cow<'a, str>),
    /// An array of content parts.
    Parts(Vec<Value>),
}

impl Text<'_> {
    /// The string; empty where there is none.
    pub fn plain(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Empty | Self::Parts(_) => "",
        }
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(Text::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::Empty)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text::Empty)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text::Empty)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Text::Empty)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Text::Empty)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text::Empty)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// The provider's index; `None` unless it is a whole number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index(pub(super) Option<i64>);

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        Ok(Self(number))
    }
}

/// A list, or its only item; `null` is an empty one.
#[derive(Debug)]
pub(super) struct OneOrMany<T>(pub(super) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or one item of it")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(OneOrMany(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|item| OneOrMany(vec![item]))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(OneOrMany::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}
