//! `tandem login` and `logout`: the dialog, what they store where, and what uses it afterwards.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::World;
use crate::loopback;
use crate::program::{Output, finish, finish_with};

const KEY: &str = "sk-CANARY-0123456789";

/// A provider whose endpoint accepts only this key.
fn provider(world: &World) {
    let port = loopback::listen(|request, stream| {
        if request.header("authorization") != Some(&format!("Bearer {KEY}")) {
            let refused = json!({ "error": { "message": "invalid key" } });
            return loopback::document(stream, 401, &refused);
        }
        if request.path.ends_with("/models") {
            let models = json!({ "data": [{ "id": "first" }, { "id": "second" }] });
            return loopback::document(stream, 200, &models);
        }
        let delta = if request.body.contains("report_ready") {
            let function = json!({ "name": "report_ready", "arguments": "{\"ready\":true}" });
            json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": function }] })
        } else {
            json!({ "content": "ready" })
        };
        let events = [
            json!({ "choices": [{ "delta": delta }] }),
            json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        ];
        let events = events.map(|event| format!("data: {event}\n\n")).concat();
        loopback::events(stream, &format!("{events}data: [DONE]\n\n"))
    });
    let url = format!("http://127.0.0.1:{port}/v1");
    let options = format!(
        "# mine\n[providers.work] # theirs\nbase-url = {url:?}\napi-key-env = \"WORK_KEY\"\n"
    );
    world.write(".home/config.toml", &options);
}

/// `tandem` without a model in its environment.
fn tandem(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    command
        .env_remove("TANDEM_MODEL")
        .env_remove("TANDEM_BASE_URL");
    command
}

/// Sends these lines to `tandem`.
fn dialog(world: &World, arguments: &[&str], lines: &[&str]) -> Output {
    finish_with(&mut tandem(world, arguments), &lines.join("\n"))
}

/// The files below a folder that contain the key.
fn with_the_key(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(with_the_key(&path));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(KEY) {
            found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    found
}

#[test]
fn a_login_stores_a_model_and_a_key_that_work() {
    for arguments in [&["login"][..], &["acp", "--login"], &["login", "work"]] {
        let world = World::new(json!([]));
        provider(&world);
        let choice = (arguments != ["login", "work"]).then_some("work");
        let lines: Vec<_> = choice.into_iter().chain(["sk-wrong", KEY, "2"]).collect();
        let output = dialog(&world, arguments, &lines);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stdout.contains("invalid key"), "{}", output.stdout);
        assert!(!output.stdout.contains("Enter uses"), "{}", output.stdout);
        assert!(
            output.stdout.contains("the model calls tools"),
            "{}",
            output.stdout
        );
        assert!(!output.stdout.contains(KEY), "{}", output.stdout);

        let config = world.read(".home/config.toml");
        assert!(
            config.starts_with("model = \"work/second\"\n# mine\n[providers.work] # theirs\n"),
            "{config}"
        );
        assert_eq!(with_the_key(&world.home()), ["work"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = std::fs::metadata(world.home().join("state/keys/work")).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600);
        }
        let answer = finish(&mut tandem(&world, &["run", "hi"]));
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (Some(0), "ready\n"),
            "{}",
            answer.stderr
        );

        let again = dialog(&world, &["login", "work"], &["", "2"]);
        assert!(
            again.stdout.contains("(Enter uses the configured one)"),
            "{again:?}"
        );

        let out = finish(&mut tandem(&world, &["logout"]));
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(0), "removed the key of work\n"),
            "{}",
            out.stderr
        );
        assert!(with_the_key(&world.home()).is_empty());
        assert!(!world.read(".home/config.toml").contains("api-key-command"));
        let refused = finish(&mut tandem(&world, &["logout"]));
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("has not stored the key"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn the_key_of_a_former_provider_is_named_and_removed() {
    let world = World::new(json!([]));
    provider(&world);
    let config = world.read(".home/config.toml");
    let other = config.replace("[providers.work]", "[providers.other]");
    world.write(".home/config.toml", &(config + &other));
    for name in ["work", "other"] {
        let output = dialog(&world, &["login", name], &[KEY, "2"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let advice = "the key of work is still stored; `tandem logout work` removes it\n";
        assert_eq!(
            output.stdout.contains(advice),
            name == "other",
            "{output:?}"
        );
    }
    let out = |arguments: &[&str]| finish(&mut tandem(&world, arguments));
    assert_eq!(out(&["logout", "work"]).stdout, "removed the key of work\n");
    assert_eq!(with_the_key(&world.home()), ["other"]);

    // Even without a model.
    let config = world.read(".home/config.toml");
    world.write(
        ".home/config.toml",
        &config.replace("model = \"other/second\"\n", ""),
    );
    assert_eq!(out(&["logout"]).stdout, "removed the key of other\n");
    assert!(with_the_key(&world.home()).is_empty());
    let nothing = out(&["logout"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(
        nothing
            .stderr
            .contains("`tandem login` has not stored a key"),
        "{nothing:?}"
    );
}

#[test]
fn an_unfinished_login_stores_nothing() {
    for lines in [
        &[][..],
        &["work"],
        &["work", "sk-wrong", "sk-wrong", "sk-wrong"],
        &["work", KEY],
        &["nowhere", "99"],
    ] {
        let world = World::new(json!([]));
        provider(&world);
        let before = world.read(".home/config.toml");
        let output = dialog(&world, &["login"], lines);
        assert_eq!(output.code, Some(1), "{lines:?}: {}", output.stdout);
        assert_eq!(world.read(".home/config.toml"), before, "{lines:?}");
        assert!(with_the_key(&world.home()).is_empty(), "{lines:?}");
    }
}

#[test]
fn a_key_goes_to_the_keyring_where_there_is_one() {
    let world = World::new(json!([]));
    provider(&world);
    // A keyring with one entry per service, as the Secret Service's own program reads and writes it.
    let program = "#!/bin/sh\nbox=\"$HOME/keyring\"; mkdir -p \"$box\"; verb=$1; shift\n\
        case $1 in --label=*) shift;; esac\n\
        case $verb in store) cat > \"$box/$2\";; lookup) cat \"$box/$2\";; clear) [ ! -e \"$HOME/locked\" ] && rm \"$box/$2\";; esac\n";
    world.write(".home/bin/secret-tool", program);
    let place = world.home().join("bin");
    let path = format!("{}:/usr/bin:/bin", place.display());
    let with_keyring = |arguments: &[&str]| {
        let mut command = tandem(&world, arguments);
        command
            .env("PATH", &path)
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
        command
    };
    let mut chmod = Command::new("chmod");
    assert!(
        chmod
            .arg("+x")
            .arg(place.join("secret-tool"))
            .status()
            .unwrap()
            .success()
    );

    // A new key takes the place of one that is stored in the same place.
    let typed = format!("{KEY}\n\n");
    for _ in 0..2 {
        finish_with(&mut tandem(&world, &["login", "work"]), &typed);
        assert_eq!(with_the_key(&world.home()), ["work"]);
    }
    // An earlier login had none, so its key is in a file, which does not stay.
    let output = finish_with(&mut with_keyring(&["login", "work"]), &typed);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("the system's keyring"),
        "{}",
        output.stdout
    );
    assert_eq!(with_the_key(&world.home()), ["tandem-work"]);
    assert!(
        world
            .read(".home/config.toml")
            .contains("api-key-keyring = \"tandem-work\"")
    );
    let answer = finish(&mut with_keyring(&["run", "hi"]));
    assert_eq!(answer.stdout, "ready\n", "{}", answer.stderr);

    world.write(".home/locked", "");
    let locked = finish(&mut with_keyring(&["logout"]));
    assert!(
        locked.code == Some(1)
            && locked
                .stderr
                .contains("from the system's keyring; try again"),
        "{locked:?}"
    );
    assert_eq!(with_the_key(&world.home()), ["tandem-work"]);
    std::fs::remove_file(world.home().join("locked")).unwrap();

    // An editor logs out.
    let (mut program, mut client) = world.serve_with(Transport::Acp, |command| {
        command
            .env_remove("TANDEM_MODEL")
            .env_remove("TANDEM_BASE_URL");
        command
            .env("PATH", &path)
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    });
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let gone = client.call("logout", Value::Null);
    assert!(gone["result"].is_object(), "{gone}");
    assert!(with_the_key(&world.home()).is_empty());
    client.hang_up();
    assert!(program.ends().success());
    client.finish();
}

#[test]
fn keys_of_providers_with_similar_names_are_kept_apart() {
    let world = World::new(json!([]));
    provider(&world);
    let config = world.read(".home/config.toml");
    let named = |name: &str| config.replace("[providers.work]", &format!("[providers.{name}]"));
    let both = named("\"my.work\"") + &named("my_work");
    world.write(".home/config.toml", &both);
    for name in ["my.work", "my_work"] {
        let output = dialog(&world, &["login", name], &[KEY, "2"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let answer = finish(&mut tandem(&world, &["run", "hi"]));
        assert_eq!(answer.stdout, "ready\n", "{name}: {}", answer.stderr);
    }
    assert_eq!(with_the_key(&world.home()).len(), 2);
    let output = finish(&mut tandem(&world, &["logout", "my.work"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let answer = finish(&mut tandem(&world, &["run", "hi"]));
    assert_eq!(answer.stdout, "ready\n", "{}", answer.stderr);
}

#[test]
fn a_configuration_that_cannot_be_changed_leaves_no_key_behind() {
    let world = World::new(json!([]));
    provider(&world);
    let config = world.read(".home/config.toml");
    let url = config.split('"').nth(1).unwrap();
    let inline = format!("providers = {{ work = {{ base-url = {url:?} }} }}\n");
    world.write(".home/config.toml", &inline);
    let output = dialog(&world, &["login", "work"], &[KEY, "2"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("cannot be changed by a program"),
        "{output:?}"
    );
    assert_eq!(world.read(".home/config.toml"), inline);
    assert!(with_the_key(&world.home()).is_empty());
}
