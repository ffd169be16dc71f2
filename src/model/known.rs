//! Built-in knowledge about models: context windows and prices, in a table that is part of the binary.
//!
//! It has the lowest precedence: the endpoint's information overrides it, and the configuration overrides both.

use std::sync::LazyLock;

use super::catalog::ModelInfo;
use super::family;
use crate::domain::{LongRequests, Prices};

/// The facts, dated; `known/update` makes it.
const TABLE: &str = include_str!("known/table.tsv");

/// The part of a name that all versions of a model share, and the version.
type Line = (String, Option<(u32, u32)>);

/// The table's rows, by line and version.
static LINES: LazyLock<Vec<(Line, &str)>> = LazyLock::new(|| {
    let by_line = |row: &'static str| {
        let (line, version) = line(row.split('\t').next()?);
        Some(((line, version), row))
    };
    rows().filter_map(by_line).collect()
});

/// The table's entry for a model, by its name at the endpoint: the newest row of its line that is not newer than the
/// model. For a name without a version, the newest row.
pub fn find(name: &str) -> Option<ModelInfo> {
    let (line, version) = line(name);
    let of_line = LINES
        .iter()
        .filter(|((known, since), _)| *known == line && (version.is_none() || *since <= version));
    let newest = of_line.max_by_key(|((_, since), _)| *since);
    let family = || {
        let plain = family::plain(name);
        rows().find(|row| {
            let line = row.split_once('*').map(|(line, _)| line);
            line.is_some_and(|line| plain.starts_with(line))
        })
    };
    let row = newest.map(|(_, row)| *row).or_else(family)?;
    let info = parse(name, row)?;
    // A fine-tuned model costs more than its base model.
    let is_tuned = name.split('/').any(|part| part.starts_with("ft:"));
    Some(ModelInfo {
        prices: info.prices.filter(|_| !is_tuned),
        ..info
    })
}

impl ModelInfo {
    /// Adds built-in values where the endpoint reports nothing, unless it is the person's own server.
    #[must_use]
    pub fn with_known(self, is_own_server: bool) -> Self {
        let Some(known) = find(&self.id).filter(|_| !is_own_server) else {
            return self;
        };
        Self {
            context_window: self.context_window.or(known.context_window),
            output: self.output.or(known.output),
            prices: self.prices.or(known.prices),
            images: self.images.or(known.images),
            ..self
        }
    }
}

fn rows() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#'))
}

/// A model's line. A snapshot's date or suffix is not a version.
fn line(name: &str) -> Line {
    let plain = family::plain(name);
    let words: Vec<&str> = plain.split('-').collect();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_snapshot = |word: &str| {
        matches!(word, "latest" | "preview" | "exp" | "customtools" | "v2")
            || is_number(word) && word.len() > 2
    };
    let mut ends = (1..words.len()).filter(|end| {
        let (first, rest) = words
            .get(*end..)
            .and_then(<[_]>::split_first)
            .unwrap_or((&"", &[]));
        is_snapshot(first) && rest.iter().all(|word| is_snapshot(word) || is_number(word))
    });
    let end = ends.next().unwrap_or(words.len());
    let stem = words.get(..end).unwrap_or_default().join("-");
    match family::version(&stem) {
        Some((before, version, after)) => (
            before.trim_end_matches('-').to_owned() + after,
            Some(family::order(version)),
        ),
        None => (stem, None),
    }
}

fn parse(name: &str, row: &str) -> Option<ModelInfo> {
    let mut fields = row.split('\t');
    let is_family = fields.next().is_some_and(|name| name.ends_with('*'));
    let mut number = || fields.next().and_then(|field| field.parse::<f64>().ok());
    let (window, output) = (number(), number());
    let prices = match (number(), number(), number(), number()) {
        (Some(input), Some(cached), Some(written), Some(output)) => Some(Prices {
            input,
            cached: Some(cached),
            cache_write: Some(written),
            output,
            long: None,
        }),
        _ => None,
    };
    let images = fields.next().map(|field| field == "i");
    let long = fields.next().and_then(long_requests);
    Some(ModelInfo {
        context_window: Some(tokens(window?)),
        output: output.map(tokens),
        prices: prices.map(|prices| Prices { long, ..prices }),
        // For a whole family, nobody can say that none of its models accepts images.
        images: images.filter(|sees| *sees || !is_family),
        ..ModelInfo::named(name)
    })
}

/// Where long requests cost more: `BEYOND:INPUT:OUTPUT`.
fn long_requests(field: &str) -> Option<LongRequests> {
    let mut numbers = field.split(':').map(|number| number.parse::<f64>().ok());
    Some(LongRequests {
        beyond: tokens(numbers.next()??),
        input: numbers.next()??,
        output: numbers.next()??,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the table has whole, positive numbers"
)]
fn tokens(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_table_rows_parse() {
        assert!(TABLE.len() <= 40 << 10);
        for row in rows() {
            let name = row.split('\t').next().unwrap();
            let info = parse(name, row).unwrap_or_else(|| panic!("{row}"));
            assert!(
                info.context_window >= Some(4096) && info.output >= Some(1024),
                "{row}"
            );
            let fields: Vec<_> = row.split('\t').collect();
            let long = info.prices.and_then(|prices| prices.long);
            assert_eq!(fields.len(), 8 + usize::from(long.is_some()), "{row}");
            assert!(
                name.ends_with('*') != info.prices.is_some(),
                "only what is sold has a price: {row}"
            );
        }
    }

    #[test]
    fn models_are_found_under_all_names() {
        #[track_caller]
        fn check(name: &str, window: u64, input: Option<f64>) {
            let info = find(name).unwrap_or_else(|| panic!("{name} is not known"));
            assert_eq!(
                (info.context_window, info.prices.map(|prices| prices.input)),
                (Some(window), input),
                "{name}"
            );
        }
        check("gpt-5.1", 272_000, Some(1.25));
        check("gpt-5.1-2025-11-13", 272_000, Some(1.25));
        check("anthropic/claude-sonnet-4.6", 1_000_000, Some(3.0));
        check("us.anthropic.claude-sonnet-4-6-v1:0", 1_000_000, Some(3.0));
        check("claude-sonnet-4-5-20250929", 200_000, Some(3.0));
        check("claude-sonnet-4-0", 200_000, Some(3.0));
        check("models/gemini-3.1-pro-preview", 1_048_576, Some(2.0));
        check("gpt-6.1-sol-2026-09-29", 922_000, Some(2.0));
        check("claude-sonnet-5-5", 1_000_000, Some(2.0));
        check("claude-3-opus-20240229", 200_000, None);
        // A newer version is treated like the newest known one of its line.
        check("gpt-7-sol", 922_000, Some(2.0));
        check("claude-opus-latest", 1_000_000, Some(4.0));
        check("claude-4.5-sonnet", 200_000, Some(3.0));
        check("gpt-7-vega", 272_000, None);
        check("ft:gpt-4.1-mini:acme::x1", 1_047_576, None);
        check("gemini-4-argon", 1_048_576, Some(4.0));
        // The coding plan has names of its own.
        check("k3", 1_048_576, Some(3.0));
        check("k3-256k", 262_144, None);
        check("openai/gpt-oss-120b", 131_072, None);
        assert_eq!(find("scripted"), None);
        assert_eq!(find("text-embedding-3-large"), None);
    }
}
