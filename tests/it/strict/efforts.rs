//! Every effort, for every model tandem knows, at every provider that serves it: in the first request and in those
//! that return thoughts and results.
//!
//! `takes` lists the efforts a provider accepts; all others are refused. Sources, as of 2026-11: the providers' pages on
//! reasoning (developers.openai.com, platform.claude.com effort and thinking, ai.google.dev thinking, docs.x.ai reasoning,
//! api-docs.deepseek.com, platform.kimi.ai, docs.mistral.ai, console.groq.com, platform.minimax.io), the catalogue
//! anomalyco/models.dev of 2026-07-02, and, where one is named below, an issue.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::Value;
use tandem::config::PROVIDERS;
use tandem::model::Effort;

use super::rows::{ROWS, Row};
use super::rules::Rule;
use super::server::Request;
use super::{Play, SIDE_BY_SIDE, look, say};
use crate::driver::side_by_side;

/// The values a field accepts.
#[derive(Debug)]
enum Values {
    Words(&'static [&'static str]),
    Tokens(u64, u64),
    Flag,
}

use Values::{Flag, Tokens, Words};

type Field = (&'static str, Values);

/// The fields that express an effort.
const FIELDS: [&str; 8] = [
    "/reasoning/effort",
    "/reasoning_effort",
    "/output_config/effort",
    "/thinking/type",
    "/thinking/budget_tokens",
    "/enable_thinking",
    "/extra_body/google/thinking_config/thinking_level",
    "/extra_body/google/thinking_config/thinking_budget",
];

const LOW_TO_HIGH: &[&str] = &["low", "medium", "high"];
const LOW_TO_XHIGH: &[&str] = &["low", "medium", "high", "xhigh"];
const LOW_TO_MAX: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const NONE_TO_HIGH: &[&str] = &["none", "low", "medium", "high"];
const MINIMAL_TO_HIGH: &[&str] = &["minimal", "low", "medium", "high"];
const NONE_TO_XHIGH: &[&str] = &["none", "low", "medium", "high", "xhigh"];
const THREE: &[&str] = &["low", "high", "max"];
const ALL: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const ON_OR_OFF: &[&str] = &["enabled", "disabled"];

/// The first number of a name and the one after it, as a decimal: 4.20 is 4.2.
pub fn version(name: &str) -> f64 {
    let is_digit = |c: char| c.is_ascii_digit();
    let (_, rest) = name.split_at(name.find(is_digit).unwrap_or(name.len()));
    let mut parts = rest.split(['.', '-', 'p']);
    let first = parts.next().unwrap_or_default();
    let major = first.trim_end_matches(|c| !is_digit(c));
    let minor = parts
        .next()
        .filter(|part| major == first && part.len() <= 2 && part.chars().all(is_digit));
    format!("{major}.{}", minor.unwrap_or("0"))
        .parse()
        .unwrap_or(0.0)
}

fn of_openai(name: &str, version: f64) -> &'static [&'static str] {
    let is = |part: &str| name.contains(part);
    match version {
        _ if name.starts_with("gpt-4") || is("gpt-5-chat") => &[],
        _ if is("-chat") || is("deep-research") => &["medium"],
        _ if name.starts_with('o') => LOW_TO_HIGH,
        _ if is("gpt-5-pro") => &["high"],
        _ if is("-pro") => &["medium", "high", "xhigh"],
        // openai/codex#6647
        ..5.2 if is("codex-max") => LOW_TO_XHIGH,
        ..5.2 if is("codex") => LOW_TO_HIGH,
        ..5.3 if is("codex") => LOW_TO_XHIGH,
        // microsoft/vscode#301045
        ..5.1 => MINIMAL_TO_HIGH,
        // anomalyco/opencode#4451
        ..5.2 => NONE_TO_HIGH,
        ..5.6 => NONE_TO_XHIGH,
        ..6.0 => &["none", "low", "medium", "high", "xhigh", "max"],
        _ => LOW_TO_MAX,
    }
}

fn of_claude(name: &str, version: f64) -> Vec<Field> {
    let is = |part: &str| name.contains(part);
    let thinking = |kinds| ("/thinking/type", Words(kinds));
    let effort = |words| ("/output_config/effort", Words(words));
    let budget = ("/thinking/budget_tokens", Tokens(1024, 64_000));
    match version {
        ..3.7 => Vec::new(),
        ..4.5 => vec![thinking(ON_OR_OFF), budget],
        ..4.6 if is("opus") => vec![thinking(ON_OR_OFF), budget, effort(LOW_TO_HIGH)],
        ..4.6 => vec![thinking(ON_OR_OFF), budget],
        ..4.7 => vec![
            thinking(&["adaptive", "enabled", "disabled"]),
            budget,
            effort(&["low", "medium", "high", "max"]),
        ],
        // PrimeIntellect-ai/prime-agent#2533
        _ if is("fable") || is("mythos") => vec![thinking(&["adaptive"]), effort(LOW_TO_MAX)],
        5.5.. if is("opus") => vec![thinking(&["adaptive"]), effort(LOW_TO_MAX)],
        5.5.. if is("sonnet") => {
            vec![thinking(&["adaptive", "between_tools"]), effort(LOW_TO_MAX)]
        }
        _ => vec![thinking(&["adaptive", "disabled"]), effort(LOW_TO_MAX)],
    }
}

fn of_gemini(name: &str, version: f64) -> Vec<Field> {
    let is = |part: &str| name.contains(part);
    let level = |words| vec![(FIELDS[6], Words(words))];
    let budget = |least, most| vec![(FIELDS[7], Tokens(least, most))];
    match version {
        ..2.5 => Vec::new(),
        ..3.0 if is("pro") => budget(128, 32_768),
        ..3.0 => budget(0, 24_576),
        // egoist/chatwise-releases#1206
        ..3.1 if is("pro") => level(&["low", "high"]),
        _ if is("pro") => level(LOW_TO_HIGH),
        ..3.7 => level(MINIMAL_TO_HIGH),
        // bolna-ai/bolna#956
        _ => level(LOW_TO_HIGH),
    }
}

fn of_grok(name: &str, version: f64) -> &'static [&'static str] {
    match version {
        // NousResearch/hermes-agent#23435
        ..4.3 => &[],
        // enricoros/big-AGI#1104
        ..4.5 => NONE_TO_HIGH,
        _ if name.contains("build") || name.contains("code") => &[],
        // mnfst/modelparams.dev#330
        ..4.6 => LOW_TO_HIGH,
        _ => LOW_TO_XHIGH,
    }
}

/// The values each provider accepts for a model.
fn takes(provider: &str, model: &str) -> Vec<Field> {
    let model = model.to_lowercase();
    let name = model.rsplit('/').next().unwrap();
    let name = name.strip_prefix("openai.").unwrap_or(name);
    let (version, is) = (version(name), |part: &str| name.contains(part));
    let effort = |words| vec![("/reasoning_effort", Words(words))];
    let thinking = |kinds| vec![("/thinking/type", Words(kinds))];
    let is_oss = is("gpt-oss");
    match provider {
        "openai" | "azure" => vec![(FIELDS[0], Words(of_openai(name, version)))],
        "anthropic" => of_claude(name, version),
        "gemini" | "vertex" => of_gemini(name, version),
        "deepseek" => [effort(LOW_TO_MAX), thinking(ON_OR_OFF)]
            .into_iter()
            .flatten()
            .collect(),
        "moonshot" if version >= 3.0 => effort(THREE),
        "moonshot" if version >= 2.7 => thinking(&["enabled"]),
        "moonshot" if version >= 2.5 => thinking(ON_OR_OFF),
        "moonshot" => Vec::new(),
        // NousResearch/hermes-agent#11243
        "mistral" if is("codestral") || is("devstral") || is("magistral") => Vec::new(),
        "mistral" => effort(&["none", "high"]),
        "xai" => effort(of_grok(name, version)),
        "zai" | "zai-coding" => match version {
            5.3.. => [effort(THREE), thinking(&["enabled"])]
                .into_iter()
                .flatten()
                .collect(),
            5.2.. => [effort(&["high", "max"]), thinking(ON_OR_OFF)]
                .into_iter()
                .flatten()
                .collect(),
            _ => thinking(ON_OR_OFF),
        },
        "minimax" if version >= 3.1 => vec![
            (FIELDS[3], Words(&["adaptive"])),
            (FIELDS[2], Words(LOW_TO_MAX)),
        ],
        "minimax" if version >= 3.0 => vec![
            (FIELDS[3], Words(&["adaptive", "disabled"])),
            (FIELDS[2], Words(LOW_TO_MAX)),
        ],
        // anomalyco/models.dev#3310
        "kimi-coding" if version >= 3.0 => {
            vec![(FIELDS[3], Words(&["adaptive"])), (FIELDS[2], Words(THREE))]
        }
        "minimax" | "kimi-coding" => vec![
            (FIELDS[3], Words(ON_OR_OFF)),
            (FIELDS[4], Tokens(1024, 64_000)),
        ],
        "dashscope" => vec![(FIELDS[5], Flag)],
        "openrouter" | "vercel" if name.starts_with("gpt-") && !is_oss => {
            vec![(FIELDS[0], Words(of_openai(name, version)))]
        }
        // earendil-works/pi#4801
        "openrouter" if is("claude") => vec![(FIELDS[0], Words(ALL))],
        "openrouter" | "vercel" => vec![(FIELDS[0], Words(&ALL[..6]))],
        // anomalyco/models.dev#2334
        "github" if name.starts_with('o') => effort(LOW_TO_XHIGH),
        "github" => effort(of_openai(name, version)),
        "groq" if is("qwen3") => effort(&["none", "default"]),
        "cerebras" if is("glm") => effort(&["none"]),
        "fireworks" if is("glm") => effort(&["none", "low", "high", "max"]),
        "fireworks" if is("deepseek") => effort(&["none", "low", "medium", "high", "xhigh", "max"]),
        "fireworks" if is("kimi") => effort(NONE_TO_HIGH),
        "nvidia" if is("deepseek") => effort(&["none", "high", "max"]),
        "opencode" if is("glm") => effort(&["none", "high", "max"]),
        // ollama/ollama#17141
        "ollama" => effort(&["none", "low", "medium", "high", "max"]),
        // SynaLinks/synalinks#105
        "vllm" if is("qwen3.8") => effort(&["low", "medium", "xhigh"]),
        "groq" if !is_oss => Vec::new(),
        _ if is_oss => effort(LOW_TO_HIGH),
        // vllm-project/vllm#40982
        _ => effort(ALL),
    }
}

/// How a request expresses an effort, by field.
pub fn said(request: &Request) -> impl Iterator<Item = (&'static str, &Value)> {
    FIELDS
        .into_iter()
        .filter_map(|field| Some((field, request.body.pointer(field)?)))
}

fn is_taken(request: &Request) -> bool {
    let takes = takes(&request.provider, request.model());
    let fits = |(field, value): (&str, &Value)| {
        let values = takes.iter().find(|(known, _)| *known == field);
        values.is_some_and(|(_, values)| match values {
            Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Tokens(least, most) => value
                .as_u64()
                .is_some_and(|tokens| (*least..=*most).contains(&tokens)),
            Flag => value.is_boolean(),
        })
    };
    let has = |field, words: &[&str]| {
        let value = request.body.pointer(field).and_then(Value::as_str);
        value.is_some_and(|value| words.contains(&value))
    };
    // elgorro/aiquila#410; K2 and Gemini accept one field or the other.
    let is_off = has(FIELDS[3], &["disabled", "between_tools"]);
    let clashes = is_off && has(FIELDS[2], &["xhigh", "max"])
        || request.body.pointer(FIELDS[6]).is_some() && request.body.pointer(FIELDS[7]).is_some()
        || is_off && request.body.get("reasoning_effort").is_some();
    said(request).all(fits) && !clashes
}

pub const RULES: &[Rule] = &[
    Rule {
        says: "The model takes this effort, in this field",
        of: |_| true,
        holds: |request, _| is_taken(request),
        spoil: |request, _| request.body["reasoning_effort"] = "frantic".into(),
    },
    Rule {
        says: "Alibaba's models drop the thoughts of earlier turns without preserve_thinking",
        of: |request| request.provider == "dashscope" && version(request.model()) > 3.55,
        holds: |request, _| request.body["preserve_thinking"] == true,
        spoil: |request, _| request.body["preserve_thinking"] = false.into(),
    },
];

/// The names in tandem's table of models.
fn known() -> impl Iterator<Item = &'static str> {
    let names = include_str!("../../../src/model/known/table.tsv").lines();
    let names = names.filter_map(|row| row.split('\t').next());
    names.filter(|name| !name.starts_with('#') && !name.ends_with('*'))
}

/// The makers of models whose names begin like this: their own providers, and their names at gateways.
const MAKERS: [(&[&str], &[&str], &str); 11] = [
    (&["gpt-", "o1", "o3", "o4"], &["openai", "azure"], "openai"),
    (&["claude-"], &["anthropic"], "anthropic"),
    (&["gemini-"], &["gemini", "vertex"], "google"),
    (&["deepseek-"], &["deepseek"], "deepseek"),
    (&["grok-"], &["xai"], "x-ai"),
    (&["kimi-"], &["moonshot", "kimi-coding"], "moonshotai"),
    (
        &["mistral-", "devstral", "magistral", "codestral"],
        &["mistral"],
        "mistralai",
    ),
    (&["glm-"], &["zai", "zai-coding"], "z-ai"),
    (&["minimax-"], &["minimax"], "minimax"),
    (&["qwen"], &["dashscope"], "qwen"),
    (&["llama-"], &["groq"], "meta-llama"),
];

/// Models of the table under other names, and models that only others serve.
const ELSEWHERE: [Row; 24] = [
    ("openai", "gpt-5.1-chat-latest"),
    ("openai", "gpt-5.1-codex"),
    ("openai", "gpt-5.3-codex"),
    ("openai", "gpt-5.5-pro"),
    ("openai", "o3-pro"),
    ("openai", "gpt-5-chat-latest"),
    ("anthropic", "claude-opus-5"),
    ("anthropic", "claude-opus-4-7"),
    ("gemini", "gemini-3.1-pro-preview"),
    ("gemini", "gemini-3.8-flash"),
    ("xai", "grok-4.6"),
    ("xai", "grok-4.7"),
    ("xai", "grok-code-fast-1"),
    ("minimax", "MiniMax-M3.1"),
    ("groq", "qwen/qwen3-32b"),
    ("groq", "moonshotai/kimi-k2-instruct-0905"),
    ("cerebras", "zai-glm-4.7"),
    ("fireworks", "accounts/fireworks/models/glm-5p3"),
    ("fireworks", "accounts/fireworks/models/deepseek-v4-pro"),
    ("nvidia", "deepseek-ai/deepseek-v4-pro"),
    ("github", "openai/o4-mini"),
    ("ollama", "gpt-oss:20b"),
    ("vllm", "openai/gpt-oss-20b"),
    ("vllm", "Qwen/Qwen3.8-27B"),
];

/// Every model at one of the providers that serve it and at a gateway. All combinations would
/// take minutes.
pub fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = ROWS.into_iter().chain(ELSEWHERE).collect();
    let providers = PROVIDERS
        .iter()
        .filter(|provider| !provider.default_model.is_empty());
    rows.extend(providers.map(|provider| (provider.name, provider.default_model)));
    for (index, name) in known().enumerate() {
        let makers = MAKERS
            .iter()
            .find(|(begin, ..)| begin.iter().any(|begin| name.starts_with(begin)));
        let (_, own, maker) = makers.unwrap_or_else(|| panic!("who makes {name}?"));
        let spelled: &'static str = format!("{maker}/{name}").leak();
        rows.push((own[index % own.len()], name));
        rows.push((["openrouter", "vercel"][index % 2], spelled));
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The outcome of a case.
#[derive(Clone)]
struct Outcome {
    row: Row,
    effort: &'static str,
    /// Whether it is in the menu.
    is_offered: bool,
    /// The effort in the first request.
    said: String,
    /// Why requests were refused.
    refusals: Vec<String>,
}

impl Outcome {
    fn words(&self) -> String {
        let ((provider, model), effort) = (self.row, self.effort);
        let offered = if self.is_offered { "offered " } else { "" };
        format!(
            "{offered}{effort} of {provider}/{model}, said as {}",
            self.said
        )
    }
}

/// All efforts of these models, each in a turn with results, after a turn with another effort.
fn of_provider(rows: &[Row]) -> Vec<Outcome> {
    let mut play = Play::begin(rows);
    let mut outcomes = Vec::new();
    for row in rows {
        play.session = play.client.session(&play.world);
        play.switch(*row);
        for effort in ["default"].into_iter().chain(Effort::ALL.map(Effort::name)) {
            let answer = play.set("effort", effort);
            play.strict.choose_effort(effort);
            play.strict.add([look("Looking."), say("Seen.")]);
            let id = play.client.prompt(&play.session, "look");
            play.client.answer(id);
            let options = answer["result"]["configOptions"].as_array().unwrap();
            let mut offered = options
                .iter()
                .filter(|option| option["id"] == "effort")
                .flat_map(|option| option["options"].as_array().unwrap());
            let requests = play.strict.requests();
            let said = requests
                .first()
                .into_iter()
                .flat_map(|(request, _)| said(request));
            outcomes.push(Outcome {
                row: *row,
                effort,
                is_offered: offered.any(|option| option["value"] == effort),
                said: said
                    .map(|(_, value)| value.to_string())
                    .collect::<Vec<_>>()
                    .join(" "),
                refusals: play.strict.refusals(),
            });
        }
        play.strict.forget();
    }
    outcomes
}

#[test]
fn every_effort_of_every_model_is_accepted_by_its_provider() {
    let mut by_provider: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows() {
        by_provider.entry(row.0).or_default().push(row);
    }
    let all: Vec<Vec<Row>> = by_provider.into_values().collect();
    let outcomes = side_by_side(SIDE_BY_SIDE, all, |rows| of_provider(&rows)).concat();
    let (refused, taken): (Vec<_>, Vec<_>) = outcomes
        .iter()
        .partition(|outcome| !outcome.refusals.is_empty());
    let offered = taken.iter().filter(|outcome| outcome.is_offered).count();
    let line = format!(
        "efforts: {} of {} taken, {offered} of them offered\n",
        taken.len(),
        outcomes.len()
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Ok(path) = std::env::var("TANDEM_EFFORTS") {
        let lines: String = outcomes
            .iter()
            .map(|outcome| outcome.words() + "\n")
            .collect();
        std::fs::write(path, lines).unwrap();
    }
    let refused: Vec<_> = refused
        .iter()
        .map(|outcome| (outcome.words(), &outcome.refusals))
        .collect();
    assert!(refused.is_empty(), "these were refused: {refused:#?}");
    // Two menu entries that produce the same request give the person no real choice.
    let twice: Vec<_> = taken
        .iter()
        .zip(taken.iter().skip(1))
        .filter(|(one, other)| {
            one.row == other.row && one.is_offered && other.is_offered && one.said == other.said
        })
        .filter(|(one, _)| one.effort != "default")
        .map(|(one, other)| (one.words(), other.effort))
        .collect();
    assert!(twice.is_empty(), "these are the same: {twice:#?}");
}
