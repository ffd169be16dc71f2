use tempfile::TempDir;

use super::*;

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn init(&self, editor: Editor, write: bool) -> (anyhow::Result<()>, String) {
        let environment = Environment::made_up(self.0.path(), &[]);
        let mut out = Vec::new();
        let result = run(
            &Args {
                editor: Some(editor),
                write,
                remove: false,
            },
            &environment,
            &mut out,
        );
        (result, String::from_utf8(out).unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("platform/helix").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn files(&self) -> usize {
        fs::read_dir(self.0.path().join("platform/helix")).map_or(0, Iterator::count)
    }
}

#[test]
fn configurations_are_printed_without_writing() {
    let home = Home::new();
    for &editor in Editor::value_variants() {
        let (result, text) = home.init(editor, false);
        result.unwrap();
        assert!(text.contains("tandem"), "{editor:?}");
    }
    assert_eq!(home.files(), 0);
}

#[test]
fn helix_files_are_written_once() {
    let home = Home::new();
    home.init(Editor::Helix, true).0.unwrap();
    let languages: toml::Table = home.read("languages.toml").parse().unwrap();
    assert_eq!(
        languages["language-server"]["tandem"]["args"][0].as_str(),
        Some("lsp")
    );
    let (result, text) = home.init(Editor::Helix, true);
    result.unwrap();
    assert_eq!(text.matches("nothing to add").count(), 2, "{text}");
    assert_eq!(home.files(), 2);
}

#[test]
fn a_home_that_cannot_be_written_has_a_way_out() {
    let home = Home::new();
    // Not even an administrator can create anything below a file.
    let blocked = home.0.path().join("platform");
    fs::write(&blocked, "").unwrap();
    let environment = Environment::made_up(
        home.0.path(),
        &[(plugin::DATA_HOME, blocked.to_str().unwrap())],
    );
    for (editor, way) in [
        (Editor::Helix, "without --write"),
        (Editor::Neovim, "plugin manager"),
    ] {
        let args = Args {
            editor: Some(editor),
            write: true,
            remove: false,
        };
        let error = run(&args, &environment, &mut Vec::new())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(way) && error.contains("(os error"),
            "{editor:?}: {error}"
        );
    }
}

#[test]
fn existing_files_keep_their_content_and_get_a_backup() {
    let home = Home::new();
    let mine = "# mine\n[[language]]\nname = \"rust\"\nlanguage-servers = [\"rust-analyzer\"]\n";
    create(&home.file("languages.toml"), mine).unwrap();
    let (result, text) = home.init(Editor::Helix, true);
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("languages.toml already has these tables")
    );
    assert!(
        text.contains("language-servers = [\"rust-analyzer\", \"tandem\"]"),
        "{text}"
    );
    assert!(home.read("languages.toml").starts_with(mine));
    assert_eq!(home.read("languages.toml.bak"), mine);
    assert_eq!(
        backup(&home.file("languages.toml")).unwrap(),
        home.file("languages.toml.bak1")
    );
}

#[test]
fn invalid_files_are_not_changed() {
    let home = Home::new();
    create(&home.file("languages.toml"), "oops =").unwrap();
    let (result, _) = home.init(Editor::Helix, true);
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("nothing was changed")
    );
    assert_eq!(home.read("languages.toml"), "oops =");
}

#[test]
fn unsupported_writes_are_refused_with_an_explanation() {
    let home = Home::new();
    for editor in [Editor::Zed, Editor::JetBrains, Editor::Emacs] {
        let (result, text) = home.init(editor, true);
        assert!(
            result
                .unwrap_err()
                .to_string()
                .starts_with("add what is printed above to the file yourself: ")
        );
        assert!(text.contains("tandem"));
    }
}

#[test]
fn a_missing_editor_installs_nothing() {
    let (result, _) = Home::new().init(Editor::VsCode, true);
    let error = result.unwrap_err().to_string();
    assert!(
        error.contains("none of code, codium") && error.contains("Install 'code' command in PATH"),
        "{error}"
    );
}
