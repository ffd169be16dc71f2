//! A case as it is written (`tandem-attacks/1`), and the variables in it.

use std::collections::BTreeMap;
use std::time::SystemTime;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Deserialize;
use serde_json::{Value, json};

/// Why a case says nothing about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Its setup cannot be built here. It counts as not run, never as passed.
    NotBuilt(String),
    /// The runner does not know a word of it: the runner's failure.
    Unknown(String),
}

/// What came of something that may be in trouble.
pub type Done<T = ()> = Result<T, Trouble>;

/// The error for a word the runner does not know.
pub fn unknown<T>(what: &str, word: impl std::fmt::Display) -> Done<T> {
    Err(Trouble::Unknown(format!("{what} `{word}`")))
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    pub id: String,
    pub category: String,
    pub title: String,
    pub severity: String,
    pub platforms: Vec<String>,
    pub setup: Vec<Value>,
    pub input: Value,
    pub expect: Expect,
}

/// What has to hold afterwards.
#[derive(Debug, Clone, Deserialize)]
pub struct Expect {
    pub verdict: String,
    pub oracles: Vec<Value>,
}

/// The cases of a file.
pub fn load(text: &str) -> Vec<Case> {
    #[derive(Deserialize)]
    struct File {
        schema: String,
        cases: Vec<Case>,
    }
    let file: File = serde_json::from_str(text).unwrap();
    assert_eq!(file.schema, "tandem-attacks/1");
    file.cases
}

impl Case {
    pub fn applies(&self) -> bool {
        self.platforms.iter().any(|platform| platform == std::env::consts::OS)
    }

    pub fn is_about(&self, oracle: &str) -> bool {
        self.expect.oracles.iter().any(|written| written["type"] == oracle)
    }

    /// The runs this case stands for: one for each of its numbers, or for each wire it can be played on.
    pub fn runs(&self) -> Vec<Value> {
        let with = |key: &str, value: Value| {
            let mut input = self.input.clone();
            input[key] = value;
            input
        };
        match self.input["kind"].as_str() {
            Some("kill_at_syscall" | "kill_after_events") => match &self.input["n"] {
                Value::Array(numbers) => numbers.iter().map(|n| with("n", n.clone())).collect(),
                _ => vec![self.input.clone()],
            },
            Some("model") if self.input["wire"] == "openai-chat" && self.is_wireless() => {
                vec![self.input.clone(), with("wire", json!("anthropic"))]
            }
            _ => vec![self.input.clone()],
        }
    }

    /// Whether its script says the same on every wire.
    fn is_wireless(&self) -> bool {
        const SAME: [&str; 4] = ["ok_text", "tool_call", "many_tool_calls", "interleaved_tool_calls"];
        let steps = self.input["script"].as_array().into_iter().flatten();
        steps.into_iter().all(|step| match step["reply"].as_str() {
            Some(reply) => SAME.contains(&reply) && step.get("omit_done").is_none(),
            None => step.get("body").is_none(),
        })
    }
}

/// The variables of a run.
#[derive(Debug, Clone, Default)]
pub struct Vars(pub BTreeMap<String, String>);

impl Vars {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// A text with the variables in it replaced; what is no variable of the run stays as it is.
    pub fn text(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, from)) = rest.split_once("${") {
            filled.push_str(before);
            let Some((name, after)) = from.split_once('}') else {
                filled.push_str("${");
                rest = from;
                continue;
            };
            match (self.0.get(name), name.strip_prefix("HTTPDATE+")) {
                (Some(value), _) => filled.push_str(value),
                (None, Some(seconds)) => filled.push_str(&http_date(seconds.parse().unwrap())),
                (None, None) => filled.extend(["${", name, "}"]),
            }
            rest = after;
        }
        filled + rest
    }

    /// All texts of a value so, its keys apart.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(list) => list.iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), self.value(value))).collect(),
            other => other.clone(),
        }
    }
}

/// So many seconds from now, as HTTP writes it.
fn http_date(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + seconds;
    let (days, time) = (now / 86_400, now % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).unwrap()];
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [("Jan", 31), ("Feb", february), ("Mar", 31), ("Apr", 30), ("May", 31), ("Jun", 30), ("Jul", 31)];
    let more = [("Aug", 31), ("Sep", 30), ("Oct", 31), ("Nov", 30), ("Dec", 31)];
    for (month, length) in months.into_iter().chain(more) {
        if day < length {
            let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
            return format!("{weekday}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1);
        }
        day -= length;
    }
    unreachable!("a year has twelve months")
}

/// A piece of what is sent: `${A*1000}` is a thousand `A`, never held as such.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    Repeat(u8, usize),
}

impl Piece<'_> {
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Repeat(_, times) => *times,
        }
    }
}

/// A text in pieces.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        let repeat = from.split_once('}').and_then(|(inside, after)| {
            let (letter, times) = inside.split_once('*')?;
            let [letter] = *letter.as_bytes() else { return None };
            Some((Piece::Repeat(letter, times.parse().ok()?), after))
        });
        let Some((repeat, after)) = repeat.or_else(|| {
            // A `}` itself repeated is no name's end.
            let times = from.strip_prefix("}*")?;
            let (times, after) = times.split_once('}')?;
            Some((Piece::Repeat(b'}', times.parse().ok()?), after))
        }) else {
            found.push(Piece::Text(text));
            return found;
        };
        found.extend([Piece::Text(before), repeat]);
        rest = after;
    }
    found.push(Piece::Text(rest));
    found
}

/// Bytes from base64.
pub fn base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).expect("base64 in a case")
}

#[test]
fn cases_are_parsed_correctly() {
    let mut vars = Vars::default();
    vars.set("WS", "/w");
    assert_eq!(vars.text("a ${WS}/b ${LEN} ${ c"), "a /w/b ${LEN} ${ c");
    assert_eq!(
        pieces("x${A*3}y${[*2}"),
        [Piece::Text("x"), Piece::Repeat(b'A', 3), Piece::Text("y"), Piece::Repeat(b'[', 2), Piece::Text("")]
    );
    let date = http_date(0);
    assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
}
