//! What a server asks for during a call: a form to fill in, or an address to open.
//!
//! Invariants: nothing is answered for the person but the defaults of a form they accepted; a value has the type of its
//! field; whatever else a server asks for is refused.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::text::display;
use crate::tools::{Person, Preview, Reply};

/// The maximum number of fields that are asked for one by one.
const MAX_FIELDS: usize = 20;
/// The maximum number of attempts to write a valid value.
const MAX_ATTEMPTS: usize = 3;
/// JSON-RPC's error code for an unknown method, and for unusable parameters.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// A server's request: its method and parameters.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub server: &'a str,
    pub method: &'a str,
    pub params: &'a Value,
}

impl Request<'_> {
    /// The result for the server, or the error as JSON-RPC has it.
    pub async fn answer(
        &self,
        person: &Person,
        withdrawn: &CancellationToken,
    ) -> Result<Value, Value> {
        let error = |code: i32, message: String| json!({ "code": code, "message": message });
        if self.method != "elicitation/create" {
            let message = format!("tandem has no method `{}`", self.method);
            return Err(error(METHOD_NOT_FOUND, message));
        }
        let filled = match self.params["mode"].as_str() {
            None | Some("form") => self.form(person, withdrawn).await,
            Some("url") => {
                let link = self.params["url"].as_str().filter(|url| may_open(url));
                let link = link.ok_or_else(|| {
                    error(
                        INVALID_PARAMS,
                        "the url must begin with http:// or https://".to_owned(),
                    )
                })?;
                let request = Preview {
                    title: self.message(),
                    link: Some(link.to_owned()),
                    ..Preview::default()
                };
                let reply = person.ask(request, withdrawn.clone()).await;
                return Ok(
                    json!({ "action": if reply == Reply::Yes { "accept" } else { "decline" } }),
                );
            }
            Some(mode) => {
                return Err(error(
                    INVALID_PARAMS,
                    format!("tandem does not support mode `{mode}`"),
                ));
            }
        };
        Ok(match filled {
            Some(content) => json!({ "action": "accept", "content": content }),
            None => json!({ "action": "decline" }),
        })
    }

    fn message(&self) -> String {
        let words = self.params["message"].as_str().unwrap_or_default();
        format!("{} asks: {}", self.server, display::escape_line(words))
    }

    /// The filled-in form; `None` if the person declined.
    ///
    /// A front end with forms is shown all fields and replies with them; any other is shown one and replies with that.
    async fn form(
        &self,
        person: &Person,
        withdrawn: &CancellationToken,
    ) -> Option<Map<String, Value>> {
        let schema = &self.params["requestedSchema"];
        let required = schema["required"].as_array();
        let is_required =
            |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
        let none = Map::new();
        let fields: Vec<Field<'_>> = schema["properties"]
            .as_object()
            .unwrap_or(&none)
            .iter()
            .map(|(name, schema)| Field {
                name,
                schema,
                is_required: is_required(name),
            })
            .collect();
        if fields.len() > MAX_FIELDS {
            return None;
        }
        let mut content = Map::new();
        let mut attempts = 0;
        let mut rest = fields.as_slice();
        loop {
            let request = self.rest_of_form(rest);
            match (person.ask(request, withdrawn.clone()).await, rest) {
                (Reply::Form(filled), _) => {
                    content.extend(filled);
                    break;
                }
                (Reply::Text(_), []) => break,
                (Reply::Text(words), [field, later @ ..]) => match field.read(&words) {
                    Some(value) => {
                        if !value.is_null() {
                            content.insert(field.name.clone(), value);
                        }
                        if later.is_empty() {
                            break;
                        }
                        (rest, attempts) = (later, 0);
                    }
                    None if attempts + 1 < MAX_ATTEMPTS => attempts += 1,
                    None => return None,
                },
                (Reply::Yes | Reply::No, _) => return None,
            }
        }
        for field in &fields {
            if let Some(default) = field.schema.get("default") {
                content.entry(field.name).or_insert_with(|| default.clone());
            }
        }
        Some(content)
    }

    /// The request for these fields: all of them as a form, and the first as a question.
    fn rest_of_form(&self, fields: &[Field<'_>]) -> Preview {
        let properties: Map<String, Value> = fields
            .iter()
            .map(|field| (field.name.clone(), field.schema.clone()))
            .collect();
        let required = fields.iter().filter(|field| field.is_required);
        let required: Vec<&String> = required.map(|field| field.name).collect();
        let answers = fields.first().map_or_else(
            || vec!["OK".to_owned()],
            |field| {
                field
                    .options()
                    .into_iter()
                    .map(|(title, _)| title)
                    .collect()
            },
        );
        Preview {
            title: self.message(),
            note: fields.first().map(Field::hint),
            answers: Some(answers),
            form: Some(Box::new(
                json!({ "type": "object", "properties": properties, "required": required }),
            )),
            ..Preview::default()
        }
    }
}

/// Only addresses of the web are opened: others start programs.
fn may_open(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// A field of a form.
struct Field<'a> {
    name: &'a String,
    schema: &'a Value,
    is_required: bool,
}

impl Field<'_> {
    /// What to write, in one line.
    fn hint(&self) -> String {
        let text = |key: &str| self.schema[key].as_str();
        let title = text("title").unwrap_or(self.name);
        let how = match self.kind() {
            "array" => " (several, separated by commas)",
            _ if self.options().is_empty() => " (write it in the chat)",
            _ => "",
        };
        match text("description") {
            Some(description) => format!("{title}: {description}{how}"),
            None => format!("{title}{how}"),
        }
    }

    fn kind(&self) -> &str {
        self.schema["type"].as_str().unwrap_or("string")
    }

    /// The values to choose from, with their titles.
    fn values(&self) -> Vec<(String, Value)> {
        let of = if self.kind() == "array" {
            &self.schema["items"]
        } else {
            self.schema
        };
        let titled = ["oneOf", "anyOf"]
            .into_iter()
            .find_map(|keyword| of[keyword].as_array());
        if let Some(titled) = titled {
            let value = |option: &Value| {
                let title = [&option["title"], &option["const"]];
                let title = title.into_iter().find_map(Value::as_str)?;
                Some((title.to_owned(), option["const"].clone()))
            };
            return titled.iter().filter_map(value).collect();
        }
        let Some(values) = of["enum"].as_array() else {
            return Vec::new();
        };
        // Titles of an enumeration as the revisions before 2025-11-25 have them.
        let titles = of["enumNames"].as_array();
        let title = |(index, value): (usize, &Value)| {
            let title = titles.and_then(|titles| titles.get(index)).unwrap_or(value);
            Some((title.as_str()?.to_owned(), value.clone()))
        };
        values.iter().enumerate().filter_map(title).collect()
    }

    /// The answers to choose from; null leaves the field out.
    fn options(&self) -> Vec<(String, Value)> {
        let mut options = self.values();
        if self.kind() == "boolean" {
            options.push(("Yes".to_owned(), true.into()));
            options.push(("No".to_owned(), false.into()));
        }
        match &self.schema["default"] {
            Value::Null if self.is_required => {}
            Value::Null => options.push(("Leave Empty".to_owned(), Value::Null)),
            default => {
                let shown = default
                    .as_str()
                    .map_or_else(|| default.to_string(), str::to_owned);
                options.push((format!("Default: {shown}"), default.clone()));
            }
        }
        options
    }

    /// The value that an answer stands for; `None` if it is not valid.
    fn read(&self, answer: &str) -> Option<Value> {
        let answer = answer.trim();
        let options = self.options();
        if let Some((_, value)) = options.iter().find(|(title, _)| title == answer) {
            let is_one = self.kind() == "array" && value.is_string();
            return Some(if is_one {
                json!([value])
            } else {
                value.clone()
            });
        }
        let values = self.values();
        let chosen = |words: &str| {
            let words = words.trim();
            let is_it = |(title, value): &&(String, Value)| title == words || value == words;
            values.iter().find(is_it).map(|(_, value)| value.clone())
        };
        match self.kind() {
            "boolean" => match answer.to_lowercase().as_str() {
                "yes" | "y" | "true" => Some(true.into()),
                "no" | "n" | "false" => Some(false.into()),
                _ => None,
            },
            "integer" => answer.parse::<i64>().ok().map(Value::from),
            "number" => {
                let number = answer.parse().ok().and_then(serde_json::Number::from_f64);
                number.map(Value::from)
            }
            "array" => answer.split(',').map(chosen).collect(),
            _ if !values.is_empty() => chosen(answer),
            _ => Some(answer.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Ask;
    use futures_util::future::BoxFuture;
    use std::sync::Mutex;

    /// Replies in this order, then with no.
    struct Script(Mutex<Vec<Reply>>);

    impl Ask for Script {
        fn ask(&self, _: Preview, _: CancellationToken) -> BoxFuture<'static, Reply> {
            let mut replies = crate::domain::lock(&self.0);
            let reply = if replies.is_empty() {
                Reply::No
            } else {
                replies.remove(0)
            };
            Box::pin(std::future::ready(reply))
        }
    }

    async fn answer(params: Value, replies: Vec<Reply>) -> Result<Value, Value> {
        let request = Request {
            server: "s",
            method: "elicitation/create",
            params: &params,
        };
        let person = Person::new(Script(Mutex::new(replies)));
        request.answer(&person, &CancellationToken::new()).await
    }

    fn form() -> Value {
        json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {
            "name": { "type": "string", "default": "Ann" },
            "age": { "type": "integer" },
            "sure": { "type": "boolean" },
            "color": { "type": "string", "oneOf": [{ "const": "#f00", "title": "Red" }] },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
        }, "required": ["age"] } })
    }

    #[tokio::test]
    async fn forms_are_filled_in_at_once_or_field_by_field() {
        let whole = Reply::Form(Map::from_iter([("age".to_owned(), json!(7))]));
        let filled = answer(form(), vec![whole]).await.unwrap();
        assert_eq!(
            filled,
            json!({ "action": "accept", "content": { "age": 7, "name": "Ann" } })
        );
        let text = |words: &str| Reply::Text(words.to_owned());
        let typed = ["Bob", "many", "42", "no", "Red", "a, b"]
            .map(text)
            .to_vec();
        let content =
            json!({ "name": "Bob", "age": 42, "sure": false, "color": "#f00", "tags": ["a", "b"] });
        assert_eq!(
            answer(form(), typed).await.unwrap(),
            json!({ "action": "accept", "content": content })
        );
        let skipped = [
            "Default: Ann",
            "42",
            "Leave Empty",
            "Leave Empty",
            "Leave Empty",
        ]
        .map(text)
        .to_vec();
        let content = json!({ "name": "Ann", "age": 42 });
        assert_eq!(
            answer(form(), skipped).await.unwrap(),
            json!({ "action": "accept", "content": content })
        );
    }

    #[tokio::test]
    async fn a_declined_form_is_not_answered() {
        let text = |words: &str| Reply::Text(words.to_owned());
        let declined = json!({ "action": "decline" });
        for replies in [
            vec![],
            vec![text("Bob"), Reply::No],
            vec![text("Bob"), text("x"), text("y"), text("z"), text("42")],
            vec![Reply::Yes],
        ] {
            assert_eq!(answer(form(), replies).await.unwrap(), declined);
        }
    }

    #[tokio::test]
    async fn only_addresses_of_the_web_are_opened() {
        let link = |url: &str| json!({ "mode": "url", "message": "Pay", "url": url });
        let opened = answer(link("https://a.example"), vec![Reply::Yes])
            .await
            .unwrap();
        assert_eq!(opened, json!({ "action": "accept" }));
        let declined = answer(link("https://a.example"), vec![]).await.unwrap();
        assert_eq!(declined, json!({ "action": "decline" }));
        for url in ["file:///etc/passwd", "javascript:1", "vscode://x", ""] {
            assert_eq!(
                answer(link(url), vec![Reply::Yes]).await.unwrap_err()["code"],
                -32602
            );
        }
    }
}
