//! The manifest for the ACP registry follows the registry's rules (its `agent.schema.json` and `CONTRIBUTING.md`).

use serde_json::Value;

const MANIFEST: &str = include_str!("../../editors/acp-registry/agent.json");
const ICON: &str = include_str!("../../editors/acp-registry/icon.svg");
const PLATFORMS: [&str; 6] = [
    "darwin-aarch64",
    "darwin-x86_64",
    "linux-aarch64",
    "linux-x86_64",
    "windows-aarch64",
    "windows-x86_64",
];
const ARCHIVES: [&str; 5] = [".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2"];

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| panic!("`{field}` is missing in {value}"))
}

#[test]
fn the_manifest_names_this_program() {
    let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    let id = text(&manifest, "id");
    assert!(id.starts_with(|c: char| c.is_ascii_lowercase()), "{id}");
    assert!(
        id.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
        "{id}"
    );
    assert_eq!(text(&manifest, "name"), "tandem");
    assert_eq!(text(&manifest, "version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&manifest, "license"), env!("CARGO_PKG_LICENSE"));
    text(&manifest, "description");
    let known = [
        "id",
        "name",
        "version",
        "description",
        "repository",
        "website",
        "authors",
        "license",
        "distribution",
    ];
    assert!(
        manifest
            .as_object()
            .unwrap()
            .keys()
            .all(|field| known.contains(&field.as_str())),
        "{manifest}"
    );
}

#[test]
fn its_archives_have_this_version_and_start_acp() {
    let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    let distribution = manifest["distribution"].as_object().unwrap();
    assert_eq!(distribution.keys().collect::<Vec<_>>(), ["binary"]);
    let targets = distribution["binary"].as_object().unwrap();
    assert!(!targets.is_empty());
    for (platform, target) in targets {
        assert!(PLATFORMS.contains(&platform.as_str()), "{platform}");
        let archive = text(target, "archive");
        assert!(
            url::Url::parse(archive).is_ok_and(|url| url.scheme() == "https"),
            "{archive}"
        );
        assert!(
            ARCHIVES.iter().any(|ending| archive.ends_with(ending)),
            "{archive}"
        );
        assert!(
            archive.contains(concat!("/download/v", env!("CARGO_PKG_VERSION"), "/")),
            "{archive}"
        );
        assert_eq!(text(target, "cmd"), "./tandem");
        assert_eq!(target["args"], serde_json::json!(["acp"]));
    }
}

#[test]
fn its_icon_is_small_and_follows_the_theme() {
    assert!(
        ICON.starts_with("<svg ") && !ICON.contains("<!--"),
        "{ICON}"
    );
    assert!(ICON.contains(r#"width="16" height="16""#), "{ICON}");
    for attribute in ["fill=\"", "stroke=\""] {
        for rest in ICON.split(attribute).skip(1) {
            let color = rest.split('"').next().unwrap();
            assert!(matches!(color, "currentColor" | "none"), "{color}");
        }
    }
    assert!(
        ICON.contains("currentColor") && !ICON.contains("style"),
        "{ICON}"
    );
}

/// Each provider that works without configuration has a recorded stream that shows its shape.
#[test]
fn each_provider_has_a_recorded_stream() {
    use tandem::config::PROVIDERS;
    use tandem::domain::Api;
    let streams = |api: &str| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/streams")
            .join(api);
        let names = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    for provider in PROVIDERS {
        let api = match provider.api {
            Api::Chat => "chat",
            Api::Responses => "responses",
            Api::Messages => "messages",
        };
        let prefix = format!("{}-", provider.name);
        assert!(
            streams(api).iter().any(|name| name.starts_with(&prefix)),
            "no tests/streams/{api}/{prefix}….sse"
        );
    }
}
