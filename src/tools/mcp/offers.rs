//! What servers offer the person rather than the model: prompts, which are slash commands, and resources, which can be
//! mentioned.
//!
//! Invariants: lists are bounded; names are as the server wrote them, so those that could deceive a person are left out.

use serde_json::{Map, Value};

use super::connection::{Broken, Connection, pages};
use super::listing::brief;
use crate::text::display;

/// The longest name or URI, in bytes.
const NAME: usize = 512;

/// What a server offers the person.
#[derive(Debug, Default)]
pub(super) struct Offers {
    pub prompts: Vec<ServerPrompt>,
    pub resources: Vec<Resource>,
}

/// A prompt of a server: a slash command.
#[derive(Debug, Clone)]
pub struct ServerPrompt {
    /// `SERVER:prompt`, as it is typed after the slash.
    pub command: String,
    /// What it does.
    pub description: String,
    /// Its own name.
    pub(super) name: String,
    /// The names of its arguments, and whether each is required.
    arguments: Vec<(String, bool)>,
}

/// A resource of a server.
#[derive(Debug, Clone)]
pub struct Resource {
    /// `SERVER:URI`, as it is mentioned.
    pub mention: String,
    /// What it is.
    pub description: String,
    pub(super) uri: String,
}

impl Offers {
    /// What a running server lists, and any problems with it, phrased to complete `MCP server x …`.
    pub async fn list(connection: &Connection, server: &str) -> (Self, Vec<String>) {
        let mut notices = Vec::new();
        let prompts = listed(connection, "prompts", &mut notices).await;
        let resources = listed(connection, "resources", &mut notices).await;
        let offers = Self {
            prompts: prompts
                .iter()
                .filter_map(|prompt| ServerPrompt::read(server, prompt))
                .collect(),
            resources: resources
                .iter()
                .filter_map(|resource| Resource::read(server, resource))
                .collect(),
        };
        (offers, notices)
    }
}

async fn listed(connection: &Connection, kind: &str, notices: &mut Vec<String>) -> Vec<Value> {
    if !connection.has(kind) {
        return Vec::new();
    }
    match pages(&connection.line, kind, notices).await {
        Ok((all, _valid)) => all,
        Err(Broken { why, .. }) => {
            notices.push(why);
            Vec::new()
        }
    }
}

/// A name that a person can read, and that ends no code span in a message about it.
fn usable(name: &Value) -> Option<&str> {
    let is_plain = |name: &str| display::escape_line(name) == name && !name.contains('`');
    name.as_str()
        .filter(|name| (1..=NAME).contains(&name.len()) && is_plain(name))
}

/// A description in one line; the title if there is none.
fn described(offered: &Value) -> String {
    let texts = [&offered["description"], &offered["title"], &offered["name"]];
    let text = texts.into_iter().find_map(Value::as_str);
    display::escape_line(&brief(text.unwrap_or_default())).into_owned()
}

/// How a server's prompt is typed: a command has no blanks.
pub(super) fn command(server: &str, prompt: &str) -> String {
    format!("{server}:{prompt}").replace(char::is_whitespace, "_")
}

impl ServerPrompt {
    fn read(server: &str, prompt: &Value) -> Option<Self> {
        let name = usable(&prompt["name"])?;
        let argument = |argument: &Value| {
            let name = usable(&argument["name"])?.to_owned();
            Some((name, argument["required"] == true))
        };
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        Some(Self {
            command: command(server, name),
            description: described(prompt),
            name: name.to_owned(),
            arguments: arguments.filter_map(argument).collect(),
        })
    }

    /// Its arguments for display, optional ones in brackets.
    pub fn hint(&self) -> Option<String> {
        let shown = |(name, is_required): &(String, bool)| match is_required {
            true => name.clone(),
            false => format!("[{name}]"),
        };
        let shown: Vec<_> = self.arguments.iter().map(shown).collect();
        (!shown.is_empty()).then(|| shown.join(" "))
    }

    /// The arguments in the words after the command: one word each, and the rest for the last one.
    pub(super) fn arguments(&self, words: &str) -> Result<Map<String, Value>, String> {
        let mut rest = words.trim();
        let mut given = Map::new();
        let mut missing = Vec::new();
        for (index, (name, is_required)) in self.arguments.iter().enumerate() {
            let is_last = index + 1 == self.arguments.len();
            let split = rest.split_once(char::is_whitespace).filter(|_| !is_last);
            let (word, behind) = split.unwrap_or((rest, ""));
            rest = behind.trim_start();
            if !word.is_empty() {
                given.insert(name.clone(), word.into());
            } else if *is_required {
                missing.push(format!("`{name}`"));
            }
        }
        if missing.is_empty() {
            return Ok(given);
        }
        Err(format!(
            "`/{0}` needs {1}. Usage: `/{0} {2}`",
            self.command,
            missing.join(" and "),
            self.hint().unwrap_or_default()
        ))
    }
}

impl Resource {
    fn read(server: &str, resource: &Value) -> Option<Self> {
        let uri = usable(&resource["uri"])?;
        Some(Self {
            mention: format!("{server}:{uri}"),
            description: described(resource),
            uri: uri.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        /// Each argument gets a word, the last one all that are left; those without one are named.
        #[test]
        fn words_become_arguments(
            words in prop::collection::vec("[^\\s]{1,6}", 0..6),
            blank in "[ \t\n]{1,3}",
            required in prop::collection::vec(any::<bool>(), 0..4),
        ) {
            let name = |index: usize| format!("a{index}");
            let argument = |(index, is_required): (usize, &bool)| json!({ "name": name(index), "required": is_required });
            let arguments: Vec<_> = required.iter().enumerate().map(argument).collect();
            let prompt = ServerPrompt::read("s", &json!({ "name": "p", "arguments": arguments })).unwrap();
            let given = prompt.arguments(&words.join(&blank));
            let missing: Vec<_> = (words.len()..required.len()).filter(|&index| required[index]).map(name).collect();
            match given {
                Ok(given) => {
                    prop_assert!(missing.is_empty());
                    let values: Vec<_> = given.values().map(|value| value.as_str().unwrap()).collect();
                    prop_assert_eq!(given.len(), words.len().min(required.len()));
                    if !required.is_empty() {
                        prop_assert_eq!(values.join(&blank), words.join(&blank));
                    }
                }
                Err(why) => {
                    let named = why.split(". Usage").next().unwrap();
                    prop_assert!(!missing.is_empty());
                    for index in 0..required.len() {
                        let name = name(index);
                        prop_assert_eq!(named.contains(&format!("`{name}`")), missing.contains(&name), "{}", why);
                    }
                }
            }
        }
    }

    #[test]
    fn names_that_could_deceive_are_left_out() {
        let check = |name: Value, is_usable: bool| {
            assert_eq!(usable(&name).is_some(), is_usable, "{name}");
        };
        check(json!("summarize my notes"), true);
        check(json!("größe/ü.md?x=1#L3"), true);
        check(json!("x".repeat(NAME)), true);
        for name in [
            "",
            "a\nb",
            "a\u{202e}b",
            "a\u{200b}",
            "a`b",
            &"x".repeat(NAME + 1),
        ] {
            check(json!(name), false);
        }
        check(json!(7), false);
    }
}
