//! `WWW-Authenticate`: what a server says when it requires a login.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Why and with what to log in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the server describes its authorization.
    pub metadata: Option<String>,
    /// The permissions it requires.
    pub scope: Option<String>,
    /// Whether the login has too few of them.
    pub is_step_up: bool,
}

impl Challenge {
    /// The challenge in the headers of a response; one without parameters if there is none.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut challenge = Self::default();
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        for value in values.filter_map(|value| value.to_str().ok()) {
            for (name, value) in parameters(value) {
                match name.to_ascii_lowercase().as_str() {
                    "resource_metadata" => challenge.metadata = Some(value),
                    "scope" => challenge.scope = Some(value),
                    "error" => challenge.is_step_up = value == "insufficient_scope",
                    _ => {}
                }
            }
        }
        challenge
    }
}

/// The parameters of a challenge, whose values may be quoted.
fn parameters(mut text: &str) -> Vec<(&str, String)> {
    let mut parameters = Vec::new();
    while let Some((before, after)) = text.split_once('=') {
        // A scheme and commas may stand before the name.
        let name = before.rsplit([' ', ',', '\t']).next().unwrap_or(before);
        let (value, rest) = if let Some(quoted) = after.strip_prefix('"') {
            unquote(quoted)
        } else {
            let end = after.find([',', ' ', '\t']).unwrap_or(after.len());
            let (value, rest) = after.split_at(end);
            (value.to_owned(), rest)
        };
        parameters.push((name, value));
        text = rest;
    }
    parameters
}

/// The text up to the closing quote, and what follows.
fn unquote(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.split_at(at + 1).1),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            character => value.push(character),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn challenges_are_read_from_any_spelling() {
        let check =
            |header: &'static str, metadata: Option<&str>, scope: Option<&str>, is_step_up| {
                let headers =
                    HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static(header))]);
                let expected = Challenge {
                    metadata: metadata.map(str::to_owned),
                    scope: scope.map(str::to_owned),
                    is_step_up,
                };
                assert_eq!(Challenge::of(&headers), expected, "{header}");
            };
        check("Bearer", None, None, false);
        check(
            r#"Bearer resource_metadata="https://a/.well-known/x", scope="a b""#,
            Some("https://a/.well-known/x"),
            Some("a b"),
            false,
        );
        check(
            r#"bearer error="insufficient_scope",scope="x=1, \"y\"" , Resource_Metadata=https://a"#,
            Some("https://a"),
            Some(r#"x=1, "y""#),
            true,
        );
        check(
            r#"Bearer error="invalid_token", scope="cut"#,
            None,
            Some("cut"),
            false,
        );
    }
}
