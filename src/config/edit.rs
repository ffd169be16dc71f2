//! Changes single settings of a file of options, and leaves everything else in it as it is.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A setting: the tables it is in and its own name, such as `["providers", "openai", "base-url"]`.
pub type Key<'a> = &'a [&'a str];

/// The text with `key` set to `value` (removed if `None`); `None` if the text is not valid, or written in a way in which
/// that key cannot be set.
pub fn with(text: &str, key: Key<'_>, value: Option<&toml::Value>) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let mut expected = toml::from_str(text).ok()?;
    set(&mut expected, key, value)?;
    let (name, tables) = key.split_last()?;
    let there = spans(table.get_ref(), key);
    let mut text = text.to_owned();
    match (there, value) {
        (None, None) => {}
        (Some((_, old)), Some(value)) => text.replace_range(old, &value.to_string()),
        (Some((begin, old)), None) => {
            let begin = text.get(..begin)?.rfind('\n').map_or(0, |end| end + 1);
            let after = text.get(old.end..)?.find('\n');
            let end = after.map_or(text.len(), |length| old.end + length + 1);
            text.replace_range(begin..end, "");
        }
        (None, Some(value)) => {
            let line = format!("{} = {value}\n", quoted(name));
            let header = format!("[{}]", dotted(tables));
            match line_after(&text, &header) {
                _ if tables.is_empty() => text.insert_str(0, &line),
                Some(at) => text.insert_str(at, &line),
                None => {
                    let gap = match text.as_str() {
                        "" => "",
                        whole if whole.ends_with('\n') => "\n",
                        _ => "\n\n",
                    };
                    text.extend([gap, &header, "\n", &line]);
                }
            }
        }
    }
    // Whatever the edit of the text has hit, the settings have to be the previous ones with only this one changed.
    (toml::from_str::<toml::Table>(&text).ok()? == expected).then_some(text)
}

/// Where a key begins, and its value.
fn spans(table: &DeTable<'_>, key: Key<'_>) -> Option<(usize, std::ops::Range<usize>)> {
    let (name, rest) = key.split_first()?;
    let (at, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    match (rest, value.get_ref()) {
        ([], _) => Some((at.span().start, Spanned::span(value))),
        (rest, DeValue::Table(table)) => spans(table, rest),
        _ => None,
    }
}

/// Sets or removes a key in the parsed settings; `None` if something other than a table is in its way.
fn set(table: &mut toml::Table, key: Key<'_>, value: Option<&toml::Value>) -> Option<()> {
    let (name, rest) = key.split_first()?;
    match value {
        Some(value) if rest.is_empty() => {
            table.insert((*name).to_owned(), value.clone());
        }
        None if rest.is_empty() => {
            table.remove(*name);
        }
        None if !table.contains_key(*name) => {}
        _ => {
            let inner = table
                .entry(*name)
                .or_insert_with(|| toml::Table::new().into());
            set(inner.as_table_mut()?, rest, value)?;
        }
    }
    Some(())
}

/// The path to a value in TOML notation.
pub fn dotted(path: &[impl AsRef<str>]) -> String {
    let names = path.iter().map(|name| quoted(name.as_ref()));
    names.collect::<Vec<_>>().join(".")
}

/// Where the line after a table's header begins.
fn line_after(text: &str, header: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let code = line.split('#').next().unwrap_or_default();
        if code.trim() == header && line.ends_with('\n') {
            return Some(at);
        }
    }
    None
}

/// A name as TOML writes it.
fn quoted(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        toml::Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, key: Key<'_>, value: Option<&str>, expected: &str) {
        let value = value.map(toml::Value::from);
        assert_eq!(with(text, key, value.as_ref()).as_deref(), Some(expected));
    }

    #[test]
    fn settings_are_changed_where_they_stand() {
        let (model, url) = (["model"], ["providers", "openai", "base-url"]);
        check("", &model, Some("a/b"), "model = \"a/b\"\n");
        check(
            "# mine\nmode = \"ask\"\n",
            &model,
            Some("a"),
            "model = \"a\"\n# mine\nmode = \"ask\"\n",
        );
        check(
            "model = 'x' # best\n",
            &model,
            Some("a"),
            "model = \"a\" # best\n",
        );
        check(
            "mode = \"ask\"",
            &url,
            Some("u"),
            "mode = \"ask\"\n\n[providers.openai]\nbase-url = \"u\"\n",
        );
        let table = "[providers.openai] # mine\nheaders = { a = \"b\" }\n";
        let with_url = "[providers.openai] # mine\nbase-url = \"u\"\nheaders = { a = \"b\" }\n";
        check(table, &url, Some("u"), with_url);
        check(with_url, &url, None, table);
        check(table, &model, None, table);
    }

    #[test]
    fn text_that_cannot_be_edited_is_left_alone() {
        let url = ["providers", "openai", "base-url"];
        let value = toml::Value::from("u");
        for text in [
            "model = ",
            "providers = { openai = { api = \"chat\" } }\n",
            "providers = 1\n",
        ] {
            assert_eq!(with(text, &url, Some(&value)), None, "{text}");
        }
        let one_line = "providers = { openai = { base-url = \"u\", api = \"chat\" } }\n";
        assert_eq!(
            with(one_line, &url, None),
            None,
            "the line has another setting"
        );
    }

    proptest! {
        #[test]
        fn a_change_affects_nothing_else(
            before in "(model = \"x\"\n)?(# c\n)?(\\[limits\\]\ncost = 2[.]5\n)?(\n\\[providers[.]\"a b\"\\]\napi = \"chat\"\n)?",
            value in "[a-z\"\\\\ é\n]{0,6}",
            name in "[a-z]{1,3}",
            in_table in any::<bool>(),
        ) {
            let key: &[&str] = if in_table { &["providers", "a b", &name] } else { &[&name] };
            prop_assume!(name != "api");
            let value = toml::Value::from(value);
            let after = with(&before, key, Some(&value)).unwrap();
            let again = with(&after, key, Some(&value));
            prop_assert_eq!(again.as_ref(), Some(&after));
            let removed = with(&after, key, None).unwrap();
            let (before, removed): (toml::Table, toml::Table) = (toml::from_str(&before).unwrap(), toml::from_str(&removed).unwrap());
            let empty = before.get("providers").is_none() && in_table;
            if !empty {
                prop_assert_eq!(before, removed);
            }
        }
    }
}
