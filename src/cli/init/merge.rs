//! Appends to a TOML file without changing its contents.

use toml::{Table, Value};

/// The result of merging.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Merged<'t> {
    /// The file with everything that could be appended.
    pub text: String,
    /// Paragraphs that conflict with the file.
    pub by_hand: Vec<&'t str>,
}

/// Appends the paragraphs of `template` that `existing` lacks. Each paragraph is valid TOML on its own.
///
/// # Errors
/// `existing` is not TOML.
pub(super) fn merge<'t>(existing: &str, template: &'t str) -> Result<Merged<'t>, toml::de::Error> {
    let mut table: Table = existing.parse()?;
    let mut merged = Merged {
        text: existing.to_owned(),
        by_hand: Vec::new(),
    };
    for paragraph in template.split("\n\n").map(str::trim_end) {
        let part: Table = paragraph
            .parse()
            .expect("the templates are valid TOML (a test reads them)");
        if has(&table, &part) {
            continue;
        }
        let together = format!("{}\n{paragraph}\n", with_line_end(&merged.text));
        match together.parse() {
            Ok(fits) if !names_twice(&table, &part) => {
                table = fits;
                merged.text = together;
            }
            _ => merged.by_hand.push(paragraph),
        }
    }
    Ok(merged)
}

fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}

/// Whether `table` already contains everything in `part`.
fn has(table: &Table, part: &Table) -> bool {
    part.iter()
        .all(|(key, wanted)| match (table.get(key), wanted) {
            (Some(Value::Table(table)), Value::Table(part)) => has(table, part),
            (Some(Value::Array(items)), Value::Array(wanted)) => wanted.iter().all(|wanted| {
                items.iter().any(|item| match (item, wanted) {
                    (Value::Table(item), Value::Table(wanted)) => has(item, wanted),
                    (item, wanted) => item == wanted,
                })
            }),
            (found, wanted) => found == Some(wanted),
        })
}

/// Whether a `[[table]]` of `part` has the name of an existing one: TOML allows that, editors do not expect it.
fn names_twice(table: &Table, part: &Table) -> bool {
    let names = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| Some(item.get("name")?.as_str()?.to_owned()))
            .collect()
    };
    part.iter().any(|(key, value)| {
        let there = table.get(key).map(names).unwrap_or_default();
        names(value).iter().any(|name| there.contains(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "# about\n\n[server.t]\ncommand = \"t\"\n\n# b\n[[language]]\nname = \"rust\"\nservers = [\"ra\", \"t\"]\n\n[[language]]\nname = \"go\"\nservers = [\"t\"]\n";

    fn check(existing: &str, text: &str, by_hand: &[&str]) {
        let merged = merge(existing, TEMPLATE).unwrap();
        assert_eq!((merged.text.as_str(), &merged.by_hand[..]), (text, by_hand));
        assert_eq!(
            merge(&merged.text, TEMPLATE).unwrap().text,
            merged.text,
            "a second time adds nothing"
        );
    }

    #[test]
    fn missing_settings_are_appended_and_others_kept() {
        let (server, rust, go) = (
            "[server.t]\ncommand = \"t\"",
            "# b\n[[language]]\nname = \"rust\"\nservers = [\"ra\", \"t\"]",
            "[[language]]\nname = \"go\"\nservers = [\"t\"]",
        );
        check("", &format!("\n{server}\n\n{rust}\n\n{go}\n"), &[]);
        check(
            "x = 1 # mine",
            &format!("x = 1 # mine\n\n{server}\n\n{rust}\n\n{go}\n"),
            &[],
        );
        let mine = "[[language]]\nname = \"rust\"\nservers = [\"mine\"]\n";
        check(mine, &format!("{mine}\n{server}\n\n{go}\n"), &[rust]);
        let mine = "[server]\nt = { command = \"other\" }\n";
        check(mine, &format!("{mine}\n{rust}\n\n{go}\n"), &[server]);
        let more = "[server.t]\nargs = []\ncommand = \"t\"\n";
        check(more, &format!("{more}\n{rust}\n\n{go}\n"), &[]);
        assert!(merge("x =", TEMPLATE).is_err());
    }
}
