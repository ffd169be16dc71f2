//! Every subcommand as a person runs it: what it prints, its exit code, what it leaves behind.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::driver::World;
use crate::program::{Output, Program, finish, finish_with};

/// The events of `run --json`.
fn events(output: &Output) -> Vec<Value> {
    output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event a line"))
        .collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "call": { "id": id, "name": name, "arguments": arguments }, "fragments": 3 })
}

fn write_call() -> Value {
    call(
        "c1",
        "write_file",
        json!({ "path": "new.txt", "content": "new\n" }),
    )
}

#[test]
fn run_prints_only_the_answer_on_standard_output() {
    let world =
        World::new(json!([[{ "reasoning": "hm" }, { "text": "Hello" }, { "text": ", you" }]]));
    let output = world.run(&["run", "hi", "there"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "Hello, you\n"),
        "{}",
        output.stderr
    );
    let request = world.rehearsal().requests()[0]["messages"].to_string();
    assert!(request.contains("hi there"), "{request}");
}

#[test]
fn run_json_prints_the_events_of_a_turn_in_order() {
    let calls = json!([
        { "text": "Looking." },
        call("c1", "read_file", json!({ "path": "a.txt" })),
        call("c2", "read_file", json!({ "path": "gone.txt" })),
        call("c3", "no_such_tool", json!({})),
        { "usage": { "prompt_tokens": 100, "completion_tokens": 7 } },
    ]);
    let world = World::new(json!([calls, [{ "text": "It says hello." }]]));
    world.write("a.txt", "hello\n");
    let output = world.run(&["run", "--json", "what is in a.txt?"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let events = events(&output);
    let kinds = kinds(&events);
    assert_eq!(kinds.first(), Some(&"turn_start"));
    assert_eq!(kinds.last(), Some(&"done"));
    assert_eq!(of(&events, "iteration_start").len(), 2);
    assert_eq!(of(&events, "iteration_complete").len(), 2);

    let chunks: String = of(&events, "tool_call_delta")
        .iter()
        .filter(|delta| delta["id"] == "c1")
        .map(|delta| delta["json_chunk"].as_str().unwrap())
        .collect();
    assert_eq!(
        serde_json::from_str::<Value>(&chunks).unwrap(),
        json!({ "path": "a.txt" })
    );
    let complete: Vec<_> = of(&events, "tool_call_complete")
        .iter()
        .map(|event| event["call"].clone())
        .collect();
    assert_eq!(
        complete[0],
        json!({ "id": "c1", "name": "read_file", "arguments": { "path": "a.txt" } })
    );

    let started: Vec<_> = of(&events, "tool_execution_start")
        .iter()
        .map(|event| event["call_id"].clone())
        .collect();
    assert_eq!(
        started,
        ["c1", "c2"],
        "a call of an unknown tool does not run"
    );
    let mut ended: Vec<_> = of(&events, "tool_execution_end")
        .iter()
        .map(|event| {
            (
                event["call_id"].as_str().unwrap(),
                event["result"]["is_error"].as_bool().unwrap(),
            )
        })
        .collect();
    ended.sort_unstable();
    assert_eq!(
        ended,
        [("c1", false), ("c2", true), ("c3", true)],
        "exactly one end for each call"
    );

    assert_eq!(of(&events, "usage")[0]["input"], 100);
    let done = events.last().unwrap();
    assert_eq!(done["termination_reason"], "end_turn");
    assert_eq!(done["final_text"], "It says hello.");
    assert_eq!(done["iterations"], 2);
}

#[test]
fn a_failed_turn_is_an_error_event_before_done_and_exit_code_one() {
    let status = |status: u16, message: &str| json!([{ "status": status, "body": { "error": { "message": message } } }]);
    let world = World::new(json!([
        status(401, "Incorrect API key provided"),
        status(400, "maximum context length is 8192 tokens"),
        status(404, "no such model"),
        [{ "text": "half" }, { "cut": true }],
    ]));
    for (code, word) in [
        ("auth", "TANDEM_API_KEY"),
        ("context_overflow", "8192"),
        ("invalid_request", "scripted"),
        ("truncated", "ended early"),
    ] {
        let output = world.run(&["run", "--json", "hi"]);
        assert_eq!(output.code, Some(1), "{code}");
        let events = events(&output);
        let [.., error, done] = events.as_slice() else {
            panic!("{code}: {events:?}")
        };
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("error"), &json!(code)),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
        assert_eq!(done["termination_reason"], "error");
    }
}

#[test]
fn a_looping_turn_ends_without_a_user() {
    // Nothing looks at why a call is made.
    let why = |n: u32| json!({ "pattern": "*.x", "explanation": format!("attempt {n}") });
    let round = |n: u32| json!([call(&format!("c{n}"), "glob", why(n))]);
    let world = World::new((0..9).map(round).collect());
    let output = world.run(&["run", "--json", "look"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let events = events(&output);
    assert_eq!(of(&events, "loop_detected")[0]["consecutive_count"], 4);
    assert_eq!(
        of(&events, "done")[0]["termination_reason"],
        "max_turn_requests"
    );
    assert_eq!(world.rehearsal().requests().len(), 4);
}

#[test]
fn without_a_model_run_and_doctor_and_models_say_how_to_get_one() {
    let world = World::new(json!([]));
    for arguments in [&["run", "hi"][..], &["doctor"], &["models"]] {
        let output = finish(
            world
                .command(arguments)
                .env_remove("TANDEM_MODEL")
                .env_remove("TANDEM_BASE_URL"),
        );
        assert_eq!(output.code, Some(1), "{arguments:?}");
        let words = output.stdout + &output.stderr;
        for way in [
            "TANDEM_BASE_URL",
            "config.toml",
            "OPENAI_API_KEY",
            "local server",
        ] {
            assert!(
                words.contains(way),
                "{arguments:?}: {way} is missing in {words}"
            );
        }
    }
}

#[test]
fn usage_errors_are_exit_code_two() {
    let world = World::new(json!([]));
    for (arguments, word) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["run", "--mode", "yolo", "hi"], "plan, ask, edit, auto"),
        (&["run", "  "], "the prompt is empty"),
        (&["run"], "the prompt is empty"),
        (&["init", "--editor", "ed"], "vscode"),
        (&["completions", "csh"], "bash"),
    ] {
        let output = world.run(arguments);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(
            output.stderr.contains(word),
            "{arguments:?}: {}",
            output.stderr
        );
    }
    let output = world.run(&["run", "-C", "/no/such/folder", "hi"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("/no/such/folder"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_prompt_may_come_from_standard_input_and_the_folder_from_a_flag() {
    let world = World::new(
        json!([[call("c1", "read_file", json!({ "path": "a.txt" }))], [{ "text": "read" }]]),
    );
    world.write("inside/a.txt", "the inner one\n");
    let output = finish_with(
        &mut world.command(&["run", "-C", "inside"]),
        "what is\nin a.txt?\n",
    );
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "read\n"),
        "{}",
        output.stderr
    );
    let requests = world.rehearsal().requests();
    assert!(requests[0].to_string().contains("what is\\nin a.txt?"));
    assert!(requests[1].to_string().contains("the inner one"));
}

#[test]
fn a_dash_in_the_prompt_is_standard_input() {
    let world = World::new(json!([[{ "text": "fine" }]]));
    let output = finish_with(
        &mut world.command(&["run", "review", "this:", "-"]),
        "-old\n+new\n",
    );
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "fine\n"),
        "{}",
        output.stderr
    );
    assert!(
        world.rehearsal().requests()[0]
            .to_string()
            .contains("review this: -old\\n+new")
    );
}

#[test]
fn mode_ask_without_a_terminal_refuses_with_a_notice() {
    let world = World::new(json!([[write_call()], [{ "text": "as you wish" }]]));
    let output = world.run(&["run", "write new.txt"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "as you wish\n")
    );
    for word in ["new.txt", "+new", "there is no terminal", "--mode edit"] {
        assert!(
            output.stderr.contains(word),
            "{word} is missing in {}",
            output.stderr
        );
    }
    assert!(!world.path().join("new.txt").exists());
    let told = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(told.contains("there is nobody to ask"), "{told}");
}

#[test]
fn mode_edit_writes_and_mode_plan_does_not() {
    for (mode, written) in [("edit", true), ("plan", false)] {
        let world = World::new(json!([[write_call()], [{ "text": "done" }]]));
        let output = world.run(&["run", "--json", "--mode", mode, "write new.txt"]);
        assert_eq!(output.code, Some(0), "{mode}: {}", output.stderr);
        assert_eq!(world.path().join("new.txt").exists(), written, "{mode}");
        let events = events(&output);
        assert_eq!(
            of(&events, "permission_requested").len(),
            0,
            "{mode}: nobody is asked"
        );
        assert_eq!(
            of(&events, "tool_execution_end")[0]["result"]["is_error"],
            !written,
            "{mode}"
        );
    }
}

#[test]
fn an_interrupt_cancels_the_turn() {
    let world = World::new(json!([[{ "text": "half" }, { "gate": "never" }]]));
    let mut command = world.command(&["run", "--json", "hi"]);
    let (mut stdout, output) = std::io::pipe().unwrap();
    let mut program = Program::start(command.stdout(output));
    world.wait(world.rehearsal().waiting_at("never"));
    program.signal(Signal::INT);
    assert_eq!(program.ends().code(), Some(130));
    world.wait(world.rehearsal().closed_early(1));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut text).unwrap();
    let done: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&done["type"], &done["termination_reason"]),
        (&json!("done"), &json!("cancelled"))
    );
}

#[test]
fn the_demo_succeeds_and_leaves_nothing_behind() {
    let world = World::new(json!([]));
    let output = finish(
        world
            .command(&["demo"])
            .env_remove("TANDEM_MODEL")
            .env_remove("TANDEM_BASE_URL"),
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for word in [
        "read_file",
        "grep",
        "edit_file",
        "FAIL ",
        "\n-    echo",
        "\n+    echo",
        "ok    total 250 4 50 = 950",
    ] {
        assert!(
            output.stdout.contains(word),
            "{word} is missing in {}",
            output.stdout
        );
    }
    let left: Vec<_> = std::fs::read_dir(world.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["tmp"], "nothing in the home folder");
    assert_eq!(
        std::fs::read_dir(world.home().join("tmp")).unwrap().count(),
        0,
        "nothing in the temporary folder"
    );
}

#[test]
fn the_demo_can_keep_its_project() {
    let world = World::new(json!([]));
    let output = world.run(&["demo", "--keep"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let (_, kept) = output
        .stdout
        .split_once("The project is in ")
        .expect("the place is named");
    let code = std::fs::read_to_string(std::path::Path::new(kept.trim()).join("total.sh")).unwrap();
    assert!(
        code.contains("$1 * $2 - $3") && code.contains("not saved yet"),
        "{code}"
    );
}

/// The findings of `doctor --json`, by their check.
fn doctor(command: &mut std::process::Command) -> (Option<i32>, Value) {
    let output = finish(command);
    let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().unwrap().iter().cloned();
    let by_check = findings
        .map(|finding| (finding["check"].as_str().unwrap().to_owned(), finding))
        .collect();
    assert_eq!(report["ok"], output.code == Some(0));
    (output.code, Value::Object(by_check))
}

#[test]
fn doctor_probes_text_and_a_call() {
    let world = World::new(
        json!([[{ "text": "ready" }], [call("c1", "report_ready", json!({ "ready": true }))]]),
    );
    let (code, findings) = doctor(&mut world.command(&["doctor", "--json"]));
    assert_eq!(code, Some(0), "{findings:#}");
    for check in ["model", "key", "streaming", "tool calls"] {
        assert_eq!(findings[check]["verdict"], "good", "{findings:#}");
    }
}

#[test]
fn doctor_lists_all_paths() {
    let world = World::new(json!([]));
    let output = finish(&mut world.command(&["doctor", "--paths", "--json"]));
    let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let places = report["paths"].as_array().unwrap();
    let of = |what: &str| {
        places
            .iter()
            .find(|place| place["what"] == what)
            .unwrap_or_else(|| panic!("{what}: {report:#}"))
    };
    assert_eq!(
        (output.code, &of("executable")["exists"]),
        (Some(0), &json!(true))
    );
    assert!(
        of("configuration")["path"]
            .as_str()
            .unwrap()
            .ends_with("config.toml")
    );
    assert_eq!(of("administrator's")["path"], "/etc/tandem/config.toml");
    assert!(places.iter().all(|place| {
        place["removal"]
            .as_str()
            .is_some_and(|removal| !removal.is_empty())
    }));
    let shown = finish(&mut world.command(&["doctor", "--paths"])).stdout;
    assert!(
        shown.contains("state") && shown.contains(of("state")["path"].as_str().unwrap()),
        "{shown}"
    );
}

#[cfg(unix)]
#[test]
fn doctor_notices_other_versions() {
    let world = World::new(json!([]));
    let (bin, extensions) = (
        world.home().join("bin"),
        world.home().join(".vscode/extensions"),
    );
    let look = || {
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let (_, findings) = doctor(world.command(&["doctor", "--json"]).env("PATH", path));
        ["executable", "VS Code"].map(|check| {
            findings[check]["found"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
    };
    assert_eq!(look(), ["", ""], "nothing is installed");
    std::fs::create_dir_all(&bin).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for name in [
        "tandem.tandem-0.0.1".to_owned(),
        "tandem.tandemish-9.0.0".to_owned(),
    ] {
        std::fs::create_dir_all(extensions.join(name)).unwrap();
    }
    std::fs::write(bin.join("tandem"), "#!/bin/sh\necho tandem 0.0.1\n").unwrap();
    let [program, extension] = look();
    assert!(
        program.contains("bin/tandem is earlier on PATH"),
        "{program}"
    );
    assert!(
        extension.contains(&format!("tandem.tandem-0.0.1 is not version {version}")),
        "{extension}"
    );
    std::fs::copy(env!("CARGO_BIN_EXE_tandem"), bin.join("tandem")).unwrap();
    std::fs::create_dir(extensions.join(format!("tandem.tandem-{version}-linux-x64"))).unwrap();
    assert_eq!(look(), ["", ""], "a copy, and this version's extension");
}

#[test]
fn doctor_names_a_refused_key_without_printing_it() {
    let unauthorized = json!([{ "status": 401, "body": { "error": { "message": "Incorrect API key provided" } } }]);
    let world = World::new(json!([unauthorized]));
    let mut command = world.command(&["doctor", "--json"]);
    let (code, findings) = doctor(command.env("TANDEM_API_KEY", "sk-test-000000000000"));
    assert_eq!(code, Some(1));
    let finding = &findings["reachability"];
    assert_eq!(finding["verdict"], "bad", "{findings:#}");
    assert!(
        finding["found"]
            .as_str()
            .unwrap()
            .contains("Incorrect API key provided"),
        "{finding}"
    );
    assert!(
        finding["advice"].as_str().unwrap().contains("key"),
        "{finding}"
    );
    assert!(
        !findings.to_string().contains("sk-test-0000"),
        "{findings:#}"
    );
}

#[test]
fn doctor_names_an_unreachable_address() {
    let world = World::new(json!([]));
    let mut command = world.command(&["doctor", "--json"]);
    let address = crate::faults::dead_address();
    let (code, findings) = doctor(command.env("TANDEM_BASE_URL", &address));
    assert_eq!(code, Some(1));
    assert!(
        findings["reachability"]["found"]
            .as_str()
            .unwrap()
            .contains(&address),
        "{findings:#}"
    );
}

#[test]
fn models_lists_what_the_endpoint_offers() {
    let world = World::new(json!([]));
    let offer = json!({ "object": "list", "data": [{ "id": "small" }, { "id": "large", "context_length": 4096 },
        { "id": "text-embedding-3" }] });
    world.rehearsal().document("/v1/models", offer);
    let output = world.run(&["models"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for line in [
        "custom/small",
        "custom/large  (4096 tokens)",
        "custom/text-embedding-3  (not for chat)",
    ] {
        assert!(
            output.stdout.lines().any(|found| found == line),
            "{line} is missing in {}",
            output.stdout
        );
    }
    let output = world.run(&["models", "--json"]);
    let list: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        list[1],
        json!({ "model": "custom/large", "context_window": 4096 })
    );
}

#[test]
fn init_prints_the_configuration_of_every_editor() {
    let world = World::new(json!([]));
    for (editor, word) in [
        ("vscode", "editors/vscode"),
        ("neovim", "vim.lsp.enable"),
        ("helix", "language-servers"),
        ("zed", "agent_servers"),
        ("emacs", "agent-shell"),
    ] {
        let output = world.run(&["init", "--editor", editor]);
        assert_eq!(output.code, Some(0), "{editor}: {}", output.stderr);
        assert!(
            output.stdout.contains(word) && output.stdout.contains("tandem"),
            "{editor}: {}",
            output.stdout
        );
    }
}

#[test]
fn init_writes_helixs_files_once() {
    let world = World::new(json!([]));
    let output = world.run(&["init", "--editor", "helix", "--write"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let written =
        std::fs::read_to_string(world.home().join(".config/helix/languages.toml")).unwrap();
    assert!(written.contains("tandem"), "{written}");
    let again = world.run(&["init", "--editor", "helix", "--write"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(
        again.stdout.matches("nothing to add").count(),
        2,
        "{}",
        again.stdout
    );
}

#[test]
fn init_installs_the_neovim_plugin_of_this_version_and_removes_it() {
    let world = World::new(json!([]));
    let init = |flag: &str| {
        let output = world.run(&["init", "--editor", "neovim", flag]);
        (output.code, output.stdout + &output.stderr)
    };
    let folder = world
        .home()
        .join(".local/share/nvim/site/pack/tandem/start/tandem");
    let (code, text) = init("--write");
    assert!(
        code == Some(0) && text.contains("installed") && folder.join("plugin/tandem.lua").exists(),
        "{text}"
    );
    assert!(init("--write").1.contains("already has this version"));
    let (code, text) = init("--remove");
    assert!(
        code == Some(0) && text.contains("removed") && !folder.exists(),
        "{text}"
    );
    std::fs::create_dir_all(&folder).unwrap();
    let (code, text) = init("--remove");
    assert!(
        code == Some(1) && text.contains("was not installed by `tandem init`") && folder.exists(),
        "{text}"
    );
}

#[test]
fn init_without_a_name_lists_installed_editors() {
    let world = World::new(json!([]));
    let programs = world.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let init = || finish(world.command(&["init"]).env("PATH", &programs));
    let none = init();
    assert!(
        none.code == Some(1) && none.stderr.contains("no editor found on PATH"),
        "{}",
        none.stderr
    );
    for program in ["nvim", "hx"] {
        std::fs::write(programs.join(program), "").unwrap();
    }
    let found = init().stdout;
    assert_eq!(
        found,
        "neovim (`nvim`): tandem init --editor neovim --write\nhelix (`hx`): tandem init --editor helix --write\n"
    );
}

#[test]
fn config_prints_path_values_and_schema() {
    let world = World::new(json!([]));
    world.write(".home/config.toml", "mode = \"plan\"\nmodle = \"x\"\n");
    let file = world.home().join("config.toml");
    assert_eq!(
        world.run(&["config", "path"]).stdout,
        format!("{}\n", file.display())
    );
    let shown = finish(
        world
            .command(&["config", "show"])
            .env("TANDEM_API_KEY", "sk-test-000000000000"),
    )
    .stdout;
    for word in ["mode = \"plan\"", "config.toml:2", "modle", "scripted"] {
        assert!(shown.contains(word), "{word} is missing in {shown}");
    }
    assert!(!shown.contains("sk-test"), "{shown}");
    let schema: Value = serde_json::from_str(&world.run(&["config", "schema"]).stdout).unwrap();
    assert!(schema["properties"]["providers"].is_object(), "{schema}");
}

#[test]
fn a_repository_cannot_flood_the_configuration_or_forge_a_line_of_it() {
    let world = World::new(json!([]));
    let forged = r#""a\u001b[2J\nforged = 1" = 1
mode = "pl\u001b[2J\nforged = 1"
permissions.deny = ["\u001b[2J\nforged = 1"]
"#;
    world.write(".tandem/config.toml", forged);
    for arguments in [["config", "show"], ["permissions", "list"]] {
        let shown = world.run(&arguments).stdout;
        assert!(shown.contains("\\nforged = 1"), "{shown}");
        let is_forged = |line: &str| line.starts_with("forged") || line.contains('\u{1b}');
        assert!(!shown.lines().any(is_forged), "{shown}");
    }
    let many: Vec<String> = (0..4000).map(|number| format!("k{number} = 1\n")).collect();
    let many = many.concat();
    world.write(".tandem/config.toml", &many);
    let shown = world.run(&["config", "show"]).stdout;
    assert_eq!(shown.matches("unknown key").count(), 100);
    assert!(
        shown.contains("more than 100 errors; ignoring all of its settings"),
        "{shown}"
    );
    world.write(".tandem/config.toml", &many.repeat(2));
    let shown = world.run(&["config", "show"]).stdout;
    assert!(
        shown.contains("cannot be read: larger than 64 KiB"),
        "{shown}"
    );
}

#[test]
fn the_configured_level_and_folder_are_those_of_the_log() {
    let world = World::new(json!([]));
    let logged = |level: &str| {
        world.write(".home/config.toml", &format!("log = \"{level}\"\n"));
        let early = r#"{"jsonrpc":"2.0","method":"tandem/early"}"#;
        finish_with(
            &mut world.command(&["lsp"]),
            &format!("Content-Length: {}\r\n\r\n{early}", early.len()),
        )
        .stderr
    };
    assert_eq!(logged("warn"), "");
    assert!(logged("debug").contains("notification before initialize"));
    assert!(
        logged("loud").contains("`log`"),
        "an unknown level is reported"
    );
    assert_eq!(
        world.run(&["logs", "--path"]).stdout,
        format!("{}\n", world.home().join("state/logs/tandem.log").display())
    );
    assert!(
        world
            .run(&["logs"])
            .stdout
            .contains("notification before initialize")
    );
}

#[test]
fn completions_man_page_and_version_are_printed() {
    let world = World::new(json!([]));
    for (arguments, word) in [
        (&["completions", "bash"][..], "complete -F"),
        (&["completions", "zsh"], "#compdef tandem"),
        (&["completions", "fish"], "complete -c tandem"),
        (&["man"], ".TH tandem 1"),
        (&["man", "run"], ".TH tandem-run 1"),
        (
            &["--version"],
            concat!("tandem ", env!("CARGO_PKG_VERSION")),
        ),
    ] {
        let output = world.run(arguments);
        assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
        assert!(
            output.stdout.contains(word),
            "{arguments:?}: {word} is missing"
        );
    }
}

#[test]
fn conversations_are_stored_listed_shown_continued_and_removed() {
    let world = World::new(
        json!([[write_call()], [{ "text": "Written." }], [{ "text": "It was new.txt." }]]),
    );
    let first = world.run(&["run", "--mode", "edit", "write a file"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);

    let list = world.run(&["sessions", "list", "--json", "-C", "."]);
    let listed: Value = serde_json::from_str(list.stdout.trim()).expect("one conversation");
    assert_eq!(listed["title"], "write a file");
    let id = listed["id"].as_str().unwrap();
    assert!(
        world
            .run(&["sessions", "list"])
            .stdout
            .contains("write a file")
    );

    let again = world.run(&["run", "--continue", "which file?"]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (Some(0), "It was new.txt.\n"),
        "{}",
        again.stderr
    );
    let request = world.rehearsal().requests().pop().unwrap();
    let roles: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"],
        "{request}"
    );

    let shown = world.run(&["sessions", "show", id]).stdout;
    for part in [
        "## You\n\nwrite a file",
        "✓ Create new.txt",
        "+new",
        "Written.",
        "which file?",
        "It was new.txt.",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let exported = world
        .run(&["sessions", "export", id, "--format", "json"])
        .stdout;
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(
        exported[0],
        json!({ "type": "user_message", "content": "write a file" })
    );

    assert_eq!(world.run(&["sessions", "rm", id]).code, Some(0));
    let gone = world.run(&["run", "--session", id, "hello?"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("unknown session"), "{}", gone.stderr);
    let none = world.run(&["run", "--continue", "hello?"]);
    assert!(
        none.stderr.contains("no saved session for"),
        "{}",
        none.stderr
    );
    assert_eq!(
        world.rehearsal().requests().len(),
        3,
        "no request for a session that does not exist"
    );
}

#[test]
fn conversations_with_a_damaged_start_are_reported_and_removable() {
    let world = World::new(json!([]));
    let journals = world.home().join("state/sessions");
    std::fs::create_dir_all(&journals).unwrap();
    std::fs::write(
        journals.join("bad.jsonl"),
        "{\"type\":\"sess\n{\"type\":\"end\"}\n",
    )
    .unwrap();
    for action in [
        &["sessions", "show", "bad"][..],
        &["sessions", "export", "bad"],
        &["run", "--session", "bad", "x"],
    ] {
        let Output {
            code,
            stdout,
            stderr,
        } = world.run(action);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{action:?}");
        assert!(
            stderr.contains("line 1 of") && stderr.contains("bad.jsonl is damaged"),
            "{action:?}: {stderr}"
        );
    }
    assert_eq!(world.run(&["sessions", "rm", "bad"]).code, Some(0));
    assert!(!journals.join("bad.jsonl").exists());
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let world = World::new(json!([]));
    world.write(
        ".home/config.toml",
        "permissions.deny = [\"run_command(rm *)\"]\n",
    );
    world
        .rehearsal()
        .document("/v1/models", json!({ "data": [{ "id": "scripted" }] }));
    for arguments in [
        &["sessions", "list"][..],
        &["permissions", "list"],
        &["models"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world.command(arguments).stdout(writer).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_turn_stops_when_its_output_is_closed() {
    // Many writes: programs started by other tests hold the pipe between their fork and their exec.
    let step = |n: u32| json!([{ "text": format!("{n}\n") }, call(&format!("c{n}"), "glob", json!({ "pattern": n.to_string() }))]);
    let world = World::new((0..50).map(step).collect());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = world
        .command(&["run", "hi"])
        .stdout(writer)
        .output()
        .unwrap();
    let words = "tandem: the output was closed, so the turn was stopped\n";
    assert_eq!(
        (
            output.status.code(),
            &*String::from_utf8_lossy(&output.stderr)
        ),
        (Some(1), words)
    );
}

#[test]
fn calls_are_described_by_their_action() {
    let world = World::new(json!([
        [call("c2", "glob", json!({ "pattern": "*.x" })), call("c3", "no_such_tool", json!({})), write_call()],
        [{ "text": "No." }],
    ]));
    let Output { stderr, .. } = world.run(&["run", "write a file"]);
    for line in [
        "✓ glob: Find *.x (",
        "✗ no_such_tool: unknown tool",
        "✗ write_file: Create new.txt: this requires the user's approval",
    ] {
        assert!(
            stderr.lines().any(|found| found.starts_with(line)),
            "{line}\nin\n{stderr}"
        );
    }
}

#[test]
fn commands_are_shown_before_they_run_and_with_how_they_ended() {
    let run = |id: &str, command: &str| [call(id, "run_command", json!({ "command": command }))];
    let world = World::new(json!([run("c1", "true"), run("c2", "false"), [{ "text": "Done." }]]));
    world.write(
        ".home/config.toml",
        "permissions.allow = [\"run_command(true)\", \"run_command(false)\"]\n",
    );
    let Output { stderr, .. } = world.run(&["run", "go"]);
    let [before, after, _, failed] = stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("{stderr}")
    };
    assert_eq!(before, "… run_command: Run `true`");
    assert!(after.starts_with("✓ run_command: Run `true` ("), "{after}");
    let expected = "✗ run_command: Run `false`: exit 1 (";
    assert!(failed.starts_with(expected), "{failed}");
    let session = world.run(&["sessions", "list"]).stdout;
    let id = session.split_whitespace().next().unwrap_or_default();
    let shown = world.run(&["sessions", "show", id]).stdout;
    assert!(shown.contains("* ✗ Run `false`: exit 1\n"), "{shown}");
}

#[test]
fn missing_and_invalid_rules_are_reported() {
    let world = World::new(json!([]));
    assert_eq!(
        world.run(&["permissions", "list"]).stdout,
        "# no rules: mode `ask` decides\n"
    );
    world.write(
        ".home/config.toml",
        "permissions.deny = [\"run_command(rm *\"]\n",
    );
    for arguments in [["permissions", "list"], ["config", "show"]] {
        let output = world.run(&arguments).stdout;
        assert!(
            output.contains("# problem: ") && output.contains("config.toml:1:21"),
            "{arguments:?}: {output}"
        );
    }
    let doctor = world.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("→ correct it; until then every call requires approval\n"),
        "{doctor}"
    );
}

#[test]
fn unusable_folders_are_named() {
    let world = World::new(json!([[{ "text": "still" }]]));
    world.write("occupied", "a file");
    let state = world.path().join("occupied");
    for (arguments, code) in [(&["run", "hi"][..], 0), (&["sessions", "list"], 1)] {
        let output = finish(world.command(arguments).env("TANDEM_STATE_DIR", &state));
        assert_eq!(output.code, Some(code), "{arguments:?}");
        assert!(
            output.stderr.contains("occupied/sessions: Not a directory"),
            "{arguments:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn conversations_do_not_resume_in_a_wider_mode() {
    let again = || json!([write_call()]);
    let world =
        World::new(json!([[write_call()], [{ "text": "Written." }], again(), [{ "text": "No." }]]));
    world.run(&["run", "--mode", "auto", "write a file"]);
    std::fs::remove_file(world.path().join("new.txt")).unwrap();
    let Output { stderr, .. } = world.run(&["run", "--continue", "once more"]);
    assert!(
        stderr.contains("continuing: write a file (mode ask, custom/scripted)"),
        "{stderr}"
    );
    assert!(
        stderr.contains("refused, because there is no terminal")
            && !world.path().join("new.txt").exists(),
        "{stderr}"
    );
    let wider = world.run(&["run", "--continue", "--mode", "edit", "really"]);
    assert!(
        wider.stderr.contains("(mode edit, custom/scripted)"),
        "{}",
        wider.stderr
    );
}
