//! Turns a server's list into tools for a model: valid for every provider, and small.
//!
//! Invariants: the same list gives the same tools in the same order, whatever order the server uses; a schema is an
//! object with properties; the tools of a server take at most [`LARGEST`] bytes of every request.
//!
//! Omissions are reported.

use serde_json::{Map, Value, json};

use super::headers::Mirrored;
use crate::text::display::{self, counted};

/// The longest description, in characters.
const DESCRIPTION: usize = 500;
/// A longer schema, in bytes, loses its inner descriptions.
const SCHEMA: usize = 3 << 10;
/// The maximum size of one server's tools, in bytes.
const LARGEST: usize = 24 << 10;
/// The longest original name, in bytes.
const NAME: usize = 128;
/// Keywords that describe a schema without restricting it.
const DESCRIBING: [&str; 6] = [
    "description",
    "title",
    "examples",
    "default",
    "$comment",
    "$schema",
];
/// Keywords that providers do not accept at the top level of a schema: the model is told them in words.
const NOT_AT_THE_TOP: [&str; 8] = [
    "oneOf", "anyOf", "allOf", "not", "enum", "if", "then", "else",
];
/// Keywords there that some providers do not accept, and that say nothing about the arguments.
const IDENTIFYING: [&str; 2] = ["$schema", "$id"];
/// The longest such text, in bytes.
const ALTERNATIVES: usize = 1000;

/// The tools of a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listing {
    pub tools: Vec<Listed>,
    /// What was omitted, to complete `MCP server x …`.
    pub notices: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    /// The server's own name for it.
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// Its parameters in headers, or why they are not valid.
    pub mirrored: Result<Mirrored, String>,
}

impl Listing {
    /// The tools to offer; `None` stands for one that cannot be called.
    pub fn new(listed: Vec<Option<Listed>>, mirrors: bool) -> Self {
        let offered = listed.len();
        let mut tools: Vec<Listed> = listed.into_iter().flatten().collect();
        let nameless = offered - tools.len();
        let mut notices = Vec::new();
        if mirrors {
            tools.retain(|tool| match &tool.mirrored {
                Ok(_) => true,
                Err(why) => {
                    let name = display::escape_line(&tool.name);
                    let why = display::escape_line(why);
                    notices.push(format!(
                        "offers `{name}` with an `x-mcp-header` that is not valid ({why}); left out"
                    ));
                    false
                }
            });
        }
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        let named = tools.len();
        tools.dedup_by(|one, other| one.name == other.name);
        if nameless > 0 {
            notices.push(format!(
                "offers {} without a usable name; left out",
                counted(nameless, "tool")
            ));
        }
        if tools.len() < named {
            notices.push(
                "offers several tools of the same name; only the first of each is used".to_owned(),
            );
        }
        let mut size = 0;
        let kept = tools.iter().take_while(|tool| {
            size += tool.size();
            size <= LARGEST
        });
        let left_out = tools.split_off(kept.count());
        if !left_out.is_empty() {
            let names: Vec<_> = left_out
                .iter()
                .map(|tool| display::escape_line(&tool.name))
                .collect();
            let names = brief(&names.join(", "));
            let tools = counted(left_out.len(), "tool");
            let limit = LARGEST >> 10;
            notices.push(format!(
                "offers more than {limit} kB of tools, which every request would include; {tools} left out: {names}"
            ));
        }
        Self { tools, notices }
    }
}

impl Listed {
    /// Parses one listed tool; `None` if it has no usable name.
    pub fn read(mut tool: Value) -> Option<Self> {
        let name = tool["name"]
            .as_str()
            .filter(|name| !name.is_empty() && name.len() <= NAME)?
            .to_owned();
        let described = [&tool["description"], &tool["title"]]
            .into_iter()
            .find_map(Value::as_str);
        let mut description = described.map_or_else(String::new, brief);
        let mirrored = Mirrored::of(&tool["inputSchema"]);
        let schema = tool["inputSchema"].take();
        description.extend(alternatives(&schema));
        let schema = schema_of(schema).unwrap_or_else(|| {
            description.push_str(" (Its arguments are too many to be listed here.)");
            json!({ "type": "object", "properties": {} })
        });
        Some(Self {
            name,
            description,
            schema,
            mirrored,
        })
    }

    /// Its size in every request, in bytes.
    fn size(&self) -> usize {
        self.name.len() + self.description.len() + length(&self.schema)
    }
}

/// The beginning of a description, with invisible characters written out.
pub(super) fn brief(text: &str) -> String {
    let text = display::escape(text.trim());
    match text.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.into_owned(),
    }
}

/// A schema that every provider accepts; `None` if it is too long even without its descriptions.
fn schema_of(value: Value) -> Option<Value> {
    let mut schema = match value {
        Value::Object(schema) if schema.get("type").is_none_or(|of| of == "object") => schema,
        _ => Map::new(),
    };
    schema.retain(|key, _| {
        let key = key.as_str();
        !NOT_AT_THE_TOP.contains(&key) && !IDENTIFYING.contains(&key)
    });
    schema.insert("type".to_owned(), json!("object"));
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    let names = |required: &Value| {
        required
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string))
    };
    if !schema.get("required").is_some_and(names) {
        schema.shift_remove("required");
    }
    let mut schema = Value::Object(schema);
    if length(&schema) > SCHEMA {
        thin(&mut schema);
    }
    (length(&schema) <= SCHEMA).then_some(schema)
}

/// What a schema requires by the keywords that are left out of it.
fn alternatives(schema: &Value) -> Option<String> {
    let left_out: Map<String, Value> = schema
        .as_object()?
        .iter()
        .filter(|(keyword, _)| NOT_AT_THE_TOP.contains(&keyword.as_str()))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect();
    let text = Value::Object(left_out.clone()).to_string();
    (!left_out.is_empty() && text.len() <= ALTERNATIVES).then(|| {
        format!(
            "\nThe arguments also satisfy this JSON Schema: {}",
            display::escape(&text)
        )
    })
}

/// Removes descriptions, here and in every inner schema.
fn thin(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    schema.retain(|key, _| !DESCRIBING.contains(&key.as_str()));
    for (key, value) in schema {
        match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(named),
            ) => {
                named.values_mut().for_each(thin);
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(thin);
            }
            ("items" | "additionalProperties" | "not", schema) => thin(schema),
            _ => {}
        }
    }
}

fn length(schema: &Value) -> usize {
    schema.to_string().len()
}

/// Names for the model: unique, `SERVER__tool`, with characters and a length that every provider accepts.
#[derive(Debug, Default)]
pub(super) struct Names(std::collections::HashSet<String>);

impl Names {
    /// The longest name, in bytes.
    const LONGEST: usize = 64;

    /// A name that was not used before.
    pub fn give(&mut self, server: &str, tool: &str) -> String {
        let name: String = format!("{server}__{tool}").chars().map(allowed).collect();
        let fits = |ending: &str| {
            let room = Self::LONGEST - ending.len();
            format!("{}{ending}", name.get(..room).unwrap_or(&name))
        };
        let mut given = fits("");
        for number in 2.. {
            if self.0.insert(given.clone()) {
                break;
            }
            given = fits(&format!("_{number}"));
        }
        given
    }
}

fn allowed(character: char) -> char {
    if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') {
        character
    } else {
        '_'
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = Names::default();
        let mut check = |server: &str, tool: &str, expected: &str| {
            assert_eq!(names.give(server, tool), expected);
        };
        check("git", "log", "git__log");
        check("git", "log", "git__log_2");
        check("my git", "größe", "my_git__gr__e");
        check("git", "log", "git__log_3");
        let long = "x".repeat(100);
        check("s", &long, &format!("s__{}", "x".repeat(61)));
        check("s", &long, &format!("s__{}_2", "x".repeat(59)));
    }

    fn check_schema(given: &Value, expected: &Value) {
        assert_eq!(schema_of(given.clone()).as_ref(), Some(expected), "{given}");
    }

    #[test]
    fn schemas_are_objects_with_properties() {
        let empty = json!({ "type": "object", "properties": {} });
        check_schema(&Value::Null, &empty);
        check_schema(&json!("string"), &empty);
        check_schema(&json!({ "type": "string" }), &empty);
        check_schema(
            &json!({ "properties": [], "required": "a", "anyOf": [{}] }),
            &json!({ "properties": {}, "type": "object" }),
        );
        let good = json!({ "type": "object", "properties": { "a": { "type": "string", "enum": ["x"] } }, "required": ["a"] });
        check_schema(&good, &good);
    }

    #[test]
    fn long_schemas_lose_descriptions_first() {
        let long = "y".repeat(SCHEMA);
        let property = |description: &Value| json!({ "type": "array", "items": { "type": "string", "description": description } });
        let given =
            json!({ "type": "object", "properties": { "description": property(&json!(long)) } });
        let mut expected = given.clone();
        expected["properties"]["description"]["items"] = json!({ "type": "string" });
        check_schema(&given, &expected);
        assert_eq!(schema_of(json!({ "properties": { long: {} } })), None);
    }

    #[test]
    fn omitted_tools_are_reported() {
        let tool =
            |name: &str, size: usize| json!({ "name": name, "description": "d".repeat(size) });
        let list =
            |tools: Vec<Value>| Listing::new(tools.into_iter().map(Listed::read).collect(), false);
        let listing = list(vec![
            tool("b", 1),
            json!(7),
            tool("a", 501),
            tool("b", 2),
            tool("", 1),
        ]);
        let described: Vec<_> = listing
            .tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool.description.chars().count()))
            .collect();
        assert_eq!(described, [("a", 501), ("b", 1)]);
        assert_eq!(
            listing.notices,
            [
                "offers 2 tools without a usable name; left out",
                "offers several tools of the same name; only the first of each is used",
            ]
        );
        let many = (0..60)
            .map(|number| tool(&format!("t{number:02}"), 500))
            .collect();
        let listing = list(many);
        assert_eq!(listing.tools.len(), 45);
        assert_eq!(listing.notices.len(), 1);
        assert!(
            listing.notices[0].ends_with(
                "15 tools left out: t45, t46, t47, t48, t49, t50, t51, t52, t53, t54, t55, t56, t57, t58, t59"
            ),
            "{listing:?}"
        );
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "type",
            "object",
            "properties",
            "required",
            "description",
            "items",
            "name",
            "anyOf",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            words.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(words.clone().prop_map(str::to_owned), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever a server claims as its schema, the model gets an object with properties.
        #[test]
        fn any_schema_becomes_valid(value in any_value()) {
            let schema = schema_of(value).unwrap();
            prop_assert_eq!(&schema["type"], "object");
            prop_assert!(schema["properties"].is_object());
        }
    }
}
