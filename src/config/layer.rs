//! One source of options: a tree of values and where each key was written.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::edit;
use super::options::Options;
use super::problem::{Place, Problem};

/// The most mistakes that are reported of a layer.
const MISTAKES: usize = 100;
/// What limits accept.
const NUMBER: &str = "a whole number above 0";

/// The path to a value, key by key.
pub(super) type KeyPath = Vec<String>;

/// The options of one source, as written.
#[derive(Debug)]
pub(super) struct Layer {
    /// A JSON object.
    pub tree: Value,
    /// Where keys were written, if that differs from [`Self::whole`].
    places: BTreeMap<KeyPath, Place>,
    /// Where the source as a whole is.
    whole: Place,
}

impl Layer {
    /// A layer written in one place.
    pub fn new(tree: Value, whole: Place) -> Self {
        Self {
            tree: without_nulls(tree),
            places: BTreeMap::new(),
            whole,
        }
    }

    /// Sets a key that was written elsewhere.
    pub fn set(&mut self, key: &str, value: impl Into<Value>, place: Place) {
        if let Value::Object(tree) = &mut self.tree {
            tree.insert(key.to_owned(), value.into());
            self.places.insert(vec![key.to_owned()], place);
        }
    }

    /// Parses TOML. What cannot be parsed is reported; the rest applies.
    pub fn from_toml(file: &Path, text: &str, problems: &mut Vec<Problem>) -> Self {
        let position = Position { file, text };
        let (table, errors) = DeTable::parse_recoverable(text);
        problems.extend(errors.iter().take(MISTAKES).map(|error| Problem {
            place: position.at(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            message: error.message().to_owned(),
            hides_restrictions: true,
        }));
        let mut places = BTreeMap::new();
        let tree = table_to_json(table.get_ref(), &mut Vec::new(), &mut |path, offset| {
            places.insert(path.clone(), position.at(offset));
        });
        Self {
            tree,
            places,
            whole: position.at(0),
        }
    }

    /// Where a value was written: its own location, or that of the nearest key above it.
    pub fn place(&self, path: &[String]) -> &Place {
        (0..=path.len())
            .rev()
            .find_map(|length| self.places.get(&path[..length]))
            .unwrap_or(&self.whole)
    }

    /// Reports a mistake at `path` and removes the value.
    pub fn reject(&mut self, path: &[String], message: String, problems: &mut Vec<Problem>) {
        let place = self.place(path).clone();
        problems.push(Problem {
            hides_restrictions: match path {
                [] => matches!(place, Place::File { .. }),
                [section, list, ..] if section == "permissions" => list != "allow",
                [way @ .., key] => {
                    let mut way = way.iter().chain([key]);
                    let value = way.try_fold(&self.tree, |node, key| node.get(key));
                    restricts(key, value.unwrap_or(&Value::Null))
                }
            },
            place,
            key: edit::dotted(path),
            message,
        });
        remove(&mut self.tree, path);
    }

    /// The layer without invalid options; each mistake is reported. Of one with too many of them nothing applies.
    pub fn checked(mut self, problems: &mut Vec<Problem>) -> Self {
        let mut mistakes = 0;
        while let Err(error) = serde_path_to_error::deserialize::<_, Options>(&self.tree) {
            mistakes += 1;
            if mistakes > MISTAKES {
                let message = format!("more than {MISTAKES} errors; ignoring all of its settings");
                self.reject(&[], message, problems);
                break;
            }
            let path = key_path(error.path());
            self.reject(&path, reworded(&error.into_inner().to_string()), problems);
        }
        self
    }
}

/// Whether what could not be read may be rules that restrict: a list with almost their name, or a section that has or is one.
fn restricts(key: &str, value: &Value) -> bool {
    let mut inside = value.as_object().into_iter().flatten();
    nearest(key, ["permissions"]).is_some()
        || (value.is_array() && nearest(key, ["ask", "deny"]).is_some())
        || inside.any(|(key, value)| restricts(key, value))
}

/// Whether any of an editor's settings is an option of tandem's, though maybe with a wrong value.
pub fn has_ours(settings: &Value) -> bool {
    let Value::Object(settings) = settings else {
        return false;
    };
    settings.iter().any(|(key, value)| {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        let read = serde_path_to_error::deserialize::<_, Options>(&Value::Object(alone));
        // Of a known key, only the value may be wrong.
        let is_unknown = |error: serde_path_to_error::Error<serde_json::Error>| {
            key_path(error.path()).len() == 1
                && error.inner().to_string().starts_with("unknown field")
        };
        !read.is_err_and(is_unknown)
    })
}

/// Editors write null for unset options.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let set = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                set.map(|(key, value)| (key, without_nulls(value)))
                    .collect(),
            )
        }
        other => other,
    }
}

fn table_to_json(
    table: &DeTable<'_>,
    path: &mut KeyPath,
    seen: &mut impl FnMut(&KeyPath, usize),
) -> Value {
    let mut object = Map::new();
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        seen(path, key.span().start);
        object.insert(key.get_ref().to_string(), value_to_json(value, path, seen));
        path.pop();
    }
    Value::Object(object)
}

fn value_to_json(
    value: &Spanned<DeValue<'_>>,
    path: &mut KeyPath,
    seen: &mut impl FnMut(&KeyPath, usize),
) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::from(number.as_str()), Value::from),
        // Numbers that JSON cannot represent stay text, which no option accepts.
        DeValue::Float(number) => {
            let finite = number.as_str().parse().ok().and_then(Number::from_f64);
            finite.map_or_else(|| Value::from(number.as_str()), Value::Number)
        }
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => {
            let item = |(index, item): (usize, &Spanned<DeValue<'_>>)| {
                path.push(index.to_string());
                seen(path, item.span().start);
                let value = value_to_json(item, path, seen);
                path.pop();
                value
            };
            items.iter().enumerate().map(item).collect()
        }
        DeValue::Table(table) => table_to_json(table, path, seen),
    }
}

/// Converts offsets to locations.
struct Position<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Position<'_> {
    fn at(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        Place::File {
            file: self.file.to_owned(),
            line,
            column,
        }
    }
}

fn key_path(path: &serde_path_to_error::Path) -> KeyPath {
    use serde_path_to_error::Segment;
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

/// Merges `top` over `base`: values replace values, tables merge, permission rules add up. `written` is called for
/// every value that was replaced or (`true`) extended.
pub(super) fn overlay(
    base: &mut Value,
    top: &Value,
    path: &mut KeyPath,
    written: &mut impl FnMut(&KeyPath, bool),
) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => {
            for (key, value) in top {
                path.push(key.clone());
                let empty = if value.is_object() {
                    Value::Object(Map::new())
                } else {
                    Value::Null
                };
                overlay(base.entry(key).or_insert(empty), value, path, written);
                path.pop();
            }
            if top.is_empty() {
                written(path, true);
            }
        }
        (Value::Array(base), Value::Array(top))
            if path.first().is_some_and(|key| key == "permissions") =>
        {
            base.extend_from_slice(top);
            written(path, true);
        }
        (base, top) => {
            base.clone_from(top);
            written(path, false);
        }
    }
}

/// Removes what `path` leads to, or the last thing on the way there that exists: something is always removed.
pub(super) fn remove(tree: &mut Value, path: &[String]) {
    let Some((last, way)) = path.split_last() else {
        *tree = Value::Object(Map::new());
        return;
    };
    let parent = way
        .iter()
        .try_fold(&mut *tree, |node, key| child(node, key));
    let removed = match parent {
        Some(Value::Object(map)) => map.shift_remove(last).is_some(),
        Some(Value::Array(items)) => last
            .parse()
            .ok()
            .filter(|&index| index < items.len())
            .map(|index: usize| items.remove(index))
            .is_some(),
        _ => false,
    };
    if !removed {
        remove(tree, way);
    }
}

fn child<'a>(node: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match node {
        Value::Object(map) => map.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Rewords serde's message for a person: only the nearest known name, no Rust types.
fn reworded(message: &str) -> String {
    let what = if message.starts_with("unknown field") {
        "unknown key"
    } else if message.starts_with("unknown variant") {
        "unknown value"
    } else {
        return message
            .replace("a nonzero u32", NUMBER)
            .replace("a nonzero u64", NUMBER);
    };
    let mut names = message.split('`').skip(1).step_by(2);
    let found = names.next().unwrap_or_default();
    let known: Vec<_> = names.collect();
    match nearest(found, known.iter().copied()) {
        Some(name) => format!("{what} `{found}`; did you mean `{name}`?"),
        None => format!("{what} `{found}`; expected one of {}", known.join(", ")),
    }
}

/// The known name closest to what was written.
pub(super) fn nearest<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (found.chars().count() / 2).min(2);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(found, name), name))
        .filter(|&(distance, name)| {
            distance <= limit || (found.len() > 2 && name.starts_with(found))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn suggestions_are_close_names_only() {
        let check = |found: &str, expected: Option<&str>| {
            let known = ["model", "mode", "base-url", "api", "api-key-env", "mcp"];
            assert_eq!(nearest(found, known), expected, "{found}");
        };
        check("modell", Some("model"));
        check("mdoe", Some("mode"));
        check("baseUrl", Some("base-url"));
        check("api-key", Some("api-key-env"));
        check("mpc", Some("mcp"));
        check("x", None);
        check("temperature", None);
    }

    proptest! {
        /// Whatever a file contains, the check ends and leaves valid options.
        #[test]
        fn removing_bad_settings_leaves_a_valid_file(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "mode", "model", "limits", "mcp", "providers", "x", "permissions", "deny", "base-url", "models",
                    "iterations", "=", "=", ".", "\n", "\n", "[", "]", "[[", "{", "}", "\"ask\"", "7", "-1.5", "inf",
                    ",", "true", "2026-01-01", "'\u{e9}'", "#",
                ]),
                0..40,
            ),
        ) {
            let text = words.join(" ");
            let mut problems = Vec::new();
            let layer = Layer::from_toml(Path::new("f"), &text, &mut problems).checked(&mut problems);
            prop_assert!(serde_json::from_value::<Options>(layer.tree).is_ok());
        }
    }

    #[test]
    fn settings_of_other_servers_are_not_ours() {
        let check =
            |settings: Value, expected| assert_eq!(has_ours(&settings), expected, "{settings}");
        check(json!({}), false);
        check(json!({ "pylsp": { "mode": "plan" } }), false);
        check(json!(["mode"]), false);
        check(json!({ "mode": "plan" }), true);
        check(json!({ "mode": "plann", "pylsp": {} }), true);
        check(json!({ "permissions": { "denied": [] } }), true);
    }
}
