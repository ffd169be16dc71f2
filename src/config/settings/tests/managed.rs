//! What the administrator's file does.

use super::*;

/// The user's file under the administrator's.
fn managed(user: &str, managed: &str) -> (Settings, String) {
    let machine = Machine::new(user, "");
    let file = machine.home.path().join("managed/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, managed).unwrap();
    let settings = machine.load(&[], &json!({ "mode": "auto" }), Flags::default());
    let problems = machine
        .problems(&settings)
        .replace(&format!("{}/", machine.home.path().display()), "");
    (settings, problems)
}

#[test]
fn administrator_settings_can_only_restrict() {
    let user = "[permissions]\nallow = ['edit_file']\n[limits]\ncost = 5.0\niterations = 10";
    let file = "mode = 'edit'\nmodel = 'x/y'\n[permissions]\ndeny = ['run_command(curl *)']\nallow = ['run_command']\n\
                [limits]\ncost = 2.0\niterations = 20\nparallel = 1\n[mcp.own]\ncommand = ['own']";
    let (settings, problems) = managed(user, file);
    assert_eq!(
        (settings.mode, settings.widest_mode),
        (Mode::Edit, Mode::Edit)
    );
    assert_eq!(
        (
            settings.permissions.allow.len(),
            settings.permissions.deny.len()
        ),
        (1, 1)
    );
    assert_eq!(
        (
            settings.limits.turn.cost,
            settings.limits.turn.iterations,
            settings.limits.parallel
        ),
        (Some(2.0), Some(10), 1)
    );
    assert!(settings.mcp.is_empty());
    assert_eq!(
        problems.matches("managed/config.toml:").count(),
        3,
        "{problems}"
    );
    assert_eq!(
        problems.matches("can only restrict").count(),
        3,
        "{problems}"
    );
    let places: Vec<_> = settings
        .entries()
        .into_iter()
        .filter(|entry| entry.key == "mode")
        .collect();
    assert!(format!("{places:?}").contains("managed"), "{places:?}");
}

#[test]
fn narrower_user_settings_are_kept() {
    let (settings, problems) = managed(
        "[limits]\nsession-cost = 1.0",
        "mode = 'auto'\n[limits]\nsession-cost = 3",
    );
    assert_eq!(
        (settings.mode, settings.limits.session.cost),
        (Mode::Auto, Some(1.0))
    );
    assert_eq!(problems, "");
}

#[test]
fn an_unreadable_administrator_file_restricts_everything() {
    for broken in [
        "mode = 'plann'",
        "[permissions\ndeny = ['run_command']",
        "[permissions]\nask = 'run_command'",
        "\u{0}",
    ] {
        let (settings, problems) = managed("[permissions]\nallow = ['run_command']", broken);
        assert_eq!(
            (settings.mode, settings.widest_mode),
            (Mode::Ask, Mode::Ask),
            "{broken}"
        );
        assert!(
            settings.lacks_restrictions && problems.contains("managed/config.toml"),
            "{problems}"
        );
        let is_said = |problem| settings.lacks_restrictions_until_corrected(problem);
        assert!(settings.problems.iter().all(is_said), "{problems}");
    }
}
