//! Models under unlisted names: every spelling of a name means the same model, and a newer version of a line is treated
//! like its newest known one. The names come from the built-in table, the spellings from what hosts add.

use crate::domain::Effort;
use crate::model::family::{self, Known};
use crate::model::{Api, Endpoint, known, thinking};

/// Prefixes that hosts add to a name.
const BEFORE: [&str; 12] = [
    "",
    "openrouter/maker/",
    "~maker/",
    "models/",
    "publishers/maker/models/",
    "accounts/fireworks/models/",
    "maker.",
    "eu.maker.",
    "us-gov.maker.",
    "global.maker.",
    "copilot/",
    "hf.co/maker/",
];

/// Suffixes that hosts add.
const BEHIND: [&str; 15] = [
    "",
    "-20260930",
    "-2026-09-30",
    "@20260930",
    "@default",
    "@vertex",
    ":free",
    ":thinking",
    "-latest",
    "-preview",
    "-preview-09-2026",
    "-preview-20260930",
    "-v1:0",
    "-20260930-v1:0",
    "-001",
];

/// The sampling interval of combinations. It is prime, so every form is tried.
const EVERY: usize = 29;

/// The names in the table.
fn names() -> impl Iterator<Item = &'static str> {
    let rows = include_str!("../known/table.tsv").lines();
    let names = rows.filter_map(|row| row.split('\t').next());
    names.filter(|name| !name.starts_with('#') && !name.ends_with('*'))
}

/// The spellings of a name's version: with dots, with dashes, or in Fireworks' style.
fn spellings(name: &str) -> Vec<String> {
    let dotted = name.contains('.');
    let mut all = vec![name.to_owned(), name.to_uppercase()];
    if dotted {
        all.extend([name.replace('.', "-"), name.replace('.', "p")]);
    } else if let Some((before, minor)) = name.rsplit_once('-') {
        let is_version = minor.len() == 1 && before.ends_with(|c: char| c.is_ascii_digit());
        all.extend((is_version && minor < "A").then(|| format!("{before}.{minor}")));
    }
    all
}

/// Everything in a request that depends on the name, as text.
fn facts(name: &str) -> String {
    let known = Known::by_name(name);
    let homes = [
        ("openai", Api::Responses),
        ("anthropic", Api::Messages),
        ("openrouter", Api::Chat),
        ("gemini", Api::Chat),
        ("deepseek", Api::Chat),
        ("moonshot", Api::Chat),
        ("zai", Api::Chat),
        ("dashscope", Api::Chat),
        ("vllm", Api::Chat),
    ];
    let efforts = Effort::ALL.map(Some).into_iter().chain([None]);
    let switches: Vec<_> = efforts
        .flat_map(|effort| homes.map(|(provider, api)| (provider, api, effort)))
        .map(|(provider, api, effort)| {
            let endpoint = Endpoint::new(provider, api, "http://127.0.0.1/v1", name);
            let endpoint = match effort {
                Some(effort) => endpoint.with_effort(effort),
                None => endpoint,
            };
            let (echo, thinks) = (endpoint.echo(), thinking::fields(&endpoint));
            format!("{thinks:?} {echo:?} {}", endpoint.refuses_temperature(true))
        })
        .collect();
    let info = known::find(name).map(|info| (info.context_window, info.output, info.prices));
    let (family, patches, offered) = (known.family, known.patches(), Effort::taken("", name));
    format!("{family:?} {patches} {offered:?} {info:?} {switches:#?}")
}

#[test]
fn every_spelling_of_a_name_means_the_same_model() {
    let mut wrong = Vec::new();
    let mut count = 0_usize;
    for name in names() {
        let expected = facts(name);
        for spelling in spellings(name) {
            for (before, behind) in BEFORE.iter().flat_map(|b| BEHIND.map(|e| (b, e))) {
                count += 1;
                // Each name is tried in different forms from the one before: trying all would take a minute.
                if !count.is_multiple_of(EVERY) {
                    continue;
                }
                let spelled = format!("{before}{spelling}{behind}");
                if facts(&spelled) != expected {
                    wrong.push(spelled);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}: {wrong:#?}", wrong.len());
}

#[test]
fn a_newer_version_is_treated_like_the_newest_known_one_of_its_line() {
    for name in names() {
        let plain = family::plain(name);
        // `4o` is a name, not a version.
        let is_version = |(_, _, after): &(_, _, &str)| after.is_empty() || after.starts_with('-');
        let Some((before, _, after)) = family::version(&plain).filter(is_version) else {
            continue;
        };
        let of = |version: &str| facts(&format!("{before}{version}{after}"));
        let newest = of("90");
        for version in ["60", "77", "88.2", "88-9", "91.1"] {
            assert!(of(version) == newest, "{before}{version}{after}");
        }
        assert_eq!(
            newest.contains("Prices"),
            facts(name).contains("Prices"),
            "{name}"
        );
    }
}
