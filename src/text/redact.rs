//! Replaces known secrets in a text before it is logged, stored, shown or sent.
//!
//! The result contains no secret the redactor knows, neither verbatim nor JSON-escaped. Values too short to be told
//! from ordinary words are not treated as secrets. Which values are secrets: `Settings::secrets`.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use aho_corasick::{AhoCorasick, MatchKind};

/// Shorter values are treated as ordinary words.
const SHORTEST: usize = 8;
/// Replaces a secret.
const MASK: &str = "[secret]";

/// Finds known secrets. Cheap to clone; clones share what they know. The default redactor knows none.
#[derive(Debug, Clone, Default)]
pub struct Redactor(Arc<RwLock<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// `None` without secrets.
    finder: Option<AhoCorasick>,
    secrets: Vec<String>,
}

impl Redactor {
    /// A redactor for these values, except those that are too short.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Adds values that became known, for all clones.
    pub fn add<S: AsRef<str>>(&self, secrets: impl IntoIterator<Item = S>) {
        let mut fresh = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() < SHORTEST {
                continue;
            }
            let quoted = serde_json::Value::from(secret).to_string();
            let as_json = quoted.trim_matches('"');
            if as_json != secret {
                fresh.push(as_json.to_owned());
            }
            fresh.push(secret.to_owned());
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        fresh.retain(|secret| !known.secrets.contains(secret));
        if fresh.is_empty() {
            return;
        }
        known.secrets.extend(fresh);
        // The longest first: no rest of one stays where another begins it.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&known.secrets);
        known.finder = finder.ok();
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// `text` without the secrets.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.known();
        let finder = known.finder.as_ref().filter(|finder| finder.is_match(text));
        let Some(finder) = finder else {
            return Cow::Borrowed(text);
        };
        let mut clean = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut clean, |_, _, clean| {
            clean.push_str(MASK);
            true
        });
        Cow::Owned(clean)
    }

    /// Takes what can be shown of a text that comes in pieces: what may become a secret with the next one stays in `text`.
    pub fn take_clean(&self, text: &mut String) -> String {
        let begun = |secret: &String| {
            let mut lengths = (1..secret.len())
                .rev()
                .filter(|length| secret.is_char_boundary(*length));
            lengths.find(|length| {
                secret
                    .get(..*length)
                    .is_some_and(|begin| text.ends_with(begin))
            })
        };
        let known = self.known();
        let held = known.secrets.iter().filter_map(begun).max().unwrap_or(0);
        drop(known);
        let rest = text.split_off(text.len() - held);
        let mut shown = std::mem::replace(text, rest);
        self.clean(&mut shown);
        shown
    }

    /// [`Self::redact`] in place.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact(text) {
            *text = clean;
        }
    }
}

/// Whether a variable or header with this name probably holds a secret: `*_KEY`, `*TOKEN*`, but not the name of a file.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let is_place = ["FILE", "PATH", "DIR", "URL", "ENV", "COMMAND", "SOCK"]
        .iter()
        .any(|end| name.ends_with(end));
    let parts = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "APIKEY",
        "AUTHORIZATION",
        "COOKIE",
    ];
    !is_place
        && (parts.iter().any(|part| name.contains(part))
            || name.split('_').any(|word| word == "KEY")
            || ["AUTH", "PASS", "PAT"].contains(&name.rsplit('_').next().unwrap_or_default()))
}

/// The password of a URL `scheme://user:password@host`, as written, unless it may be a word of other texts, such as the
/// `postgres` of a developer's database.
pub fn password_in(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, password) = authority.rsplit_once('@')?.0.split_once(':')?;
    (password != user && looks_random(password)).then_some(password)
}

/// Whether a value has both letters and digits, unlike a word or a number.
fn looks_random(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_alphabetic())
}

/// The secrets in the words of a command or in a URL: the password, after `--api-key`, in `TOKEN=…`, `Authorization: Bearer …` and
/// `?key=…`.
pub fn secrets_in<'a>(words: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let is_name = |name: &str| {
        let mut characters = name.chars();
        characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) && is_secret(name)
    };
    let mut secrets = Vec::new();
    let mut is_announced = false;
    for word in words {
        // A method of login or a number is not one.
        if is_announced && looks_random(word) && !word.starts_with(['/', '.', '~', '-', '$']) {
            secrets.push(word.as_str());
        }
        is_announced = word.starts_with('-') && !word.contains('=') && is_secret(word);
        secrets.extend(password_in(word));
        for part in word.split(['?', '&']) {
            let mut ends = part.match_indices(['=', ':']);
            secrets.extend(ends.find_map(|(end, _)| {
                let (before, value) = part.split_at(end);
                let name = before.rsplit(['=', ' ']).next()?;
                let value = value.get(1..)?.trim();
                is_name(name).then(|| value.strip_prefix("Bearer ").unwrap_or(value))
            }));
        }
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted_everywhere() {
        let secrets = Redactor::new([
            "sk-0123456789",
            "sk-0123456789-long",
            "short",
            "quo\"ted-secret",
        ]);
        let check = |text: &str, expected: &str| assert_eq!(secrets.redact(text), expected);
        check(
            "nothing here, not even short",
            "nothing here, not even short",
        );
        check("key sk-0123456789.", "key [secret].");
        check("sk-0123456789-longsk-0123456789", "[secret][secret]");
        check(
            r#"{"k":"quo\"ted-secret"} quo"ted-secret"#,
            r#"{"k":"[secret]"} [secret]"#,
        );
    }

    #[test]
    fn passwords_of_urls_are_secrets_unless_they_are_words() {
        let check = |url: &str, expected| assert_eq!(password_in(url), expected, "{url}");
        check("postgres://me:s3cret-9@localhost/db?x=1", Some("s3cret-9"));
        check("redis://:p@ss1@host:6379", Some("p@ss1"));
        check("postgres://postgres:postgres@localhost/dev", None);
        check("mysql://dev2:dev2@localhost/dev", None);
        check("mysql://root:password@localhost", None);
        check("mysql://root:${DB_PASSWORD}@localhost", None);
        check("https://me@host/a:b@c", None);
        check("https://host/?a=b:c@d", None);
        check("http://a:@b", None);
        check("me:secret-9@host", None);
    }

    #[test]
    fn secrets_split_across_chunks_are_redacted() {
        let secrets = Redactor::new(["sk-0123456789", "sk-0123456789-löng"]);
        let text = "a sk-0123456789 b sk-0123456789-löng c sk-01234 d sk-0123456789- e";
        for size in 1..8 {
            let (mut held, mut shown) = (String::new(), String::new());
            for piece in text.chars().collect::<Vec<_>>().chunks(size) {
                held.extend(piece);
                shown.push_str(&secrets.take_clean(&mut held));
            }
            assert_eq!(
                shown + &held,
                "a [secret] b [secret] c sk-01234 d [secret]- e",
                "{size}"
            );
        }
    }

    #[test]
    fn without_secrets_nothing_changes() {
        let text = "text";
        assert!(matches!(
            Redactor::new(["1234567", ""]).redact(text),
            Cow::Borrowed(_)
        ));
        assert!(matches!(Redactor::default().redact(text), Cow::Borrowed(_)));
    }

    #[test]
    fn secrets_are_recognized_by_variable_name() {
        let check = |name: &str, expected: bool| assert_eq!(is_secret(name), expected, "{name}");
        for name in [
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "x-api-key",
            "Authorization",
        ] {
            check(name, true);
        }
        for name in [
            "KEYBOARD",
            "SSH_AUTH_SOCK",
            "TOKEN_FILE",
            "SECRETS_DIR",
            "MONKEY",
            "PATH",
            "USER-AGENT",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn secrets_of_commands_and_urls_are_found() {
        let check = |words: &[&str], expected: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(secrets_in(&words), expected, "{words:?}");
        };
        check(
            &["npx", "-y", "server", "--api-key", "k1", "--port", "1"],
            &["k1"],
        );
        check(
            &[
                "x",
                "--token=k1",
                "-e",
                "A_TOKEN=k2",
                "-e",
                "B_TOKEN",
                "image",
            ],
            &["k1", "k2"],
        );
        check(
            &[
                "mcp-remote",
                "https://a",
                "--header",
                "Authorization: Bearer k1",
            ],
            &["k1"],
        );
        check(
            &[
                "x",
                "--header=X-Api-Key:k1",
                "--ssh-key",
                "~/.ssh/id",
                "--key-file",
                "f",
            ],
            &["k1"],
        );
        check(
            &["https://token.example:8080/mcp?team=t&apiKey=k1&b=c"],
            &["k1"],
        );
    }
}
