//! What a sandboxed command can and cannot do, at each level.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::UnixListener;

use super::*;
use crate::git::git;

const HOLDING: [Level; 3] = [Level::Best, Level::Unsaved, Level::Landlock];

/// A command and a text that its output must contain, or with `!` must not contain.
type Case<'a> = (&'a str, &'a str);

/// Runs the commands in one session and checks their output.
fn check_all(stage: &Stage, cases: &[Case<'_>]) {
    for ((command, expected), told) in cases.iter().zip(stage.results()) {
        let holds = match expected.strip_prefix('!') {
            Some(absent) => !told.contains(absent),
            None => told.contains(expected),
        };
        assert!(
            holds,
            "{:?}: {command}\nexpected {expected}, but it said:\n{told}",
            stage.level
        );
    }
}

fn stage(level: Level, cases: &[Case<'_>]) -> Stage {
    Stage::new(
        level,
        &cases
            .iter()
            .map(|(command, _)| run(command))
            .collect::<Vec<_>>(),
    )
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Everything below a folder, with its text.
fn contents(folder: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = Vec::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(next) = ahead.pop() {
        for entry in next.read_dir().unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                ahead.push(entry.path());
            }
            found.push((entry.path(), std::fs::read_to_string(entry.path()).ok()));
        }
    }
    found.sort();
    found
}

#[test]
fn nothing_outside_the_workspace_is_read_or_written() {
    for level in HOLDING {
        let outside = tempfile::tempdir().unwrap();
        let out = outside.path().display();
        write(&outside.path().join("secret"), "CANARY");
        let cases = [
            (format!("cat {out}/secret"), "!CANARY"),
            (
                format!("echo x > {out}/new; touch {out}/other; ln {out}/secret l; cat l"),
                "!CANARY",
            ),
            (
                format!("ln -s {out}/secret s; cat s; echo x >> s"),
                "!CANARY",
            ),
            (
                "cat ~/.ssh/id_rsa ~/.aws/credentials ~/.netrc ~/.config/gh/hosts.yml".to_owned(),
                "!CANARY",
            ),
            (
                "cat ~/.gem/credentials ~/.stack/upload/credentials.json ~/.local/share/uv/credentials/*"
                    .to_owned(),
                "!CANARY",
            ),
            (
                "cat ~/.gem/ruby/tool ~/.stack/upload/tool".to_owned(),
                "a tool\na tool\n",
            ),
            ("cat /etc/shadow".to_owned(), "!root:"),
            (
                "echo evil >> ~/.bashrc; echo evil > ~/.profile; echo done".to_owned(),
                "done",
            ),
            (
                "touch /usr/x /etc/x /opt/x; mknod disk b 254 0; head -c 1 disk".to_owned(),
                "[exit code 1,",
            ),
        ];
        let cases: Vec<_> = cases
            .iter()
            .map(|(command, expected)| (command.as_str(), *expected))
            .collect();
        let stage = stage(level, &cases);
        let home = stage.home.path().join("me");
        for name in [
            ".ssh/id_rsa",
            ".aws/credentials",
            ".netrc",
            ".config/gh/hosts.yml",
            ".bashrc",
            ".gem/credentials",
            ".local/share/uv/credentials/credentials.toml",
            ".stack/upload/credentials.json",
        ] {
            write(&home.join(name), "CANARY");
        }
        for name in [".gem/ruby/tool", ".stack/upload/tool"] {
            write(&home.join(name), "a tool\n");
        }
        let before = (contents(outside.path()), contents(&home));
        check_all(&stage, &cases);
        assert_eq!(
            (contents(outside.path()), contents(&home)),
            before,
            "{level:?}"
        );
    }
}

#[test]
fn tandems_files_and_secrets_are_invisible() {
    for level in HOLDING {
        let cases = [
            ("env", "!sk-secret"),
            (
                "cat /proc/*/environ | tr '\\0' '\\n' | grep -a sk-secret",
                "[exit code 1,",
            ),
        ];
        let stage = stage(level, &cases);
        write(&stage.home.path().join("config/config.toml"), "# CANARY\n");
        write(&stage.home.path().join("state/x"), "CANARY");
        check_all(&stage, &cases);
        let stage = Stage::new(
            level,
            &[run(&format!("cat {}/*/*", stage.home.path().display()))],
        );
        assert!(!stage.results()[0].contains("CANARY"));
    }
}

#[test]
fn there_is_no_network_and_no_access_to_outside_programs() {
    for level in HOLDING {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (tcp_port, udp_port) = (
            tcp.local_addr().unwrap().port(),
            udp.local_addr().unwrap().port(),
        );
        let folder = tempfile::tempdir().unwrap();
        let outside = UnixListener::bind(folder.path().join("door")).unwrap();
        let connect = |path: &str| {
            format!(
                "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{path}'); print('THROUGH')\""
            )
        };
        let commands = [
            format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{tcp_port}' && echo THROUGH"),
            format!(
                "python3 -c \"import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', {udp_port}))\""
            ),
            connect(&folder.path().join("door").display().to_string()),
            connect("inside"),
        ];
        let cases: Vec<_> = commands
            .iter()
            .map(|command| (command.as_str(), "!THROUGH"))
            .collect();
        let stage = stage(level, &cases);
        let inside = UnixListener::bind(stage.world.path().join("inside")).unwrap();
        check_all(&stage, &cases);
        for listener in [&outside, &inside] {
            listener.set_nonblocking(true).unwrap();
            assert_eq!(
                listener.accept().unwrap_err().kind(),
                std::io::ErrorKind::WouldBlock,
                "{level:?}"
            );
        }
        tcp.set_nonblocking(true).unwrap();
        assert_eq!(
            tcp.accept().unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock,
            "{level:?}"
        );
        udp.set_nonblocking(true).unwrap();
        assert_eq!(
            udp.recv(&mut [0; 8]).unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock,
            "{level:?}"
        );
    }
}

#[test]
fn with_the_network_programs_that_listen_on_abstract_sockets_are_out_of_reach() {
    for level in HOLDING {
        let name = format!("tandem-test-{}-{level:?}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let line = format!(
            "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); print('THROUGH')\"; echo ran"
        );
        let told = Stage::new(level, &[json!({ "command": line, "network": true })]).results();
        assert!(
            told[0].contains("ran") && !told[0].contains("THROUGH"),
            "{level:?}: {told:?}"
        );
        listener.set_nonblocking(true).unwrap();
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock,
            "{level:?}"
        );
    }
}

#[test]
fn terminals_are_out_of_reach() {
    const OPEN: &str = "import os, pty, sys; end, name = pty.openpty(); print(os.ttyname(name), flush=True); sys.stdin.read()";
    let mut terminal = std::process::Command::new("python3")
        .args(["-c", OPEN])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut name = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(terminal.stdout.take().unwrap()),
        &mut name,
    )
    .unwrap();
    let line = format!("echo x > {} && echo THROUGH; echo ran", name.trim());
    for level in HOLDING {
        let told = Stage::new(level, &[run(&line)]).results();
        assert!(
            told[0].contains("ran") && !told[0].contains("THROUGH"),
            "{level:?}: {told:?}"
        );
    }
    drop(terminal.stdin.take());
    terminal.wait().unwrap();
}

#[test]
fn a_sandbox_program_in_the_workspace_is_not_run() {
    let mut stage = Stage::new(Level::Best, &[run("echo fine")]);
    let root = stage.world.path();
    let program = root.join(".venv/bin/bwrap");
    write(
        &program,
        &format!(
            "#!/bin/sh\ntouch '{}'\nexit 1\n",
            root.join("ran").display()
        ),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    stage.toolchains.push(("PATH", path.into()));
    let told = stage.results();
    assert!(told[0].contains("fine"), "{told:?}");
    assert!(!root.join("ran").exists());
}

#[test]
fn commands_of_a_session_share_a_network_that_nobody_else_reaches() {
    let port = free_port();
    let ask = run(&format!("cat < /dev/tcp/127.0.0.1/{port}"));
    let gone = json!({ "command": "stop", "job": 2 });
    for level in [Level::Best, Level::Unsaved] {
        let stage = Stage::new(level, &[serve(port), ask.clone()]);
        let mut client = stage.client();
        let session = client.session(&stage.world);
        finish(&mut client, &session);
        let told = stage.told();
        assert!(told[0].contains("ready"), "{level:?}: {told:?}");
        assert!(told[1].contains("SERVED"), "{level:?}: {told:?}");
        // While the job runs, neither the host nor another session can reach it, and that session can use the same port.
        let host = std::net::TcpStream::connect(("127.0.0.1", port));
        assert_eq!(
            host.unwrap_err().kind(),
            std::io::ErrorKind::ConnectionRefused,
            "{level:?}"
        );
        let calls = [
            ask.clone(),
            serve(port),
            ask.clone(),
            gone.clone(),
            ask.clone(),
        ];
        let told = Stage::new(level, &calls).results();
        assert!(!told[0].contains("SERVED"), "{level:?}: {told:?}");
        assert!(told[2].contains("SERVED"), "{level:?}: {told:?}");
        assert!(!told[4].contains("SERVED"), "{level:?}: {told:?}");
    }
}

#[test]
fn the_network_is_available_only_to_approved_commands() {
    for level in HOLDING {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let reach = format!(
            "echo x > /dev/tcp/127.0.0.1/{} && echo THROUGH",
            listener.local_addr().unwrap().port()
        );
        let stage = Stage::new(
            level,
            &[json!({ "command": reach, "network": true }), run(&reach)],
        );
        let mut client = stage.client();
        let session = client.session(&stage.world);
        let prompt = client.prompt(&session, "go");
        let question = client.next("session/request_permission");
        let shown = question["params"]["toolCall"].to_string();
        assert!(shown.contains("with the network"), "{level:?}: {shown}");
        allow(&mut client, &question);
        finish_prompt(&mut client, prompt);
        let told = stage.told();
        assert!(
            told[0].contains("THROUGH") && !told[1].contains("THROUGH"),
            "{level:?}: {told:?}"
        );
    }
}

#[test]
fn protected_files_stay_unchanged_without_leftovers() {
    let evil = "#!/bin/sh\\ntouch pwn\\n";
    for level in HOLDING {
        let commands = [
            format!("printf '{evil}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
            "git config core.fsmonitor 'touch pwn'; echo '[core]' >> .git/config; printf x > .git/config.worktree".into(),
            format!("mv .git x; cp -r x .git; printf '{evil}' > .git/hooks/post-commit; rm -rf x"),
            "mv sub sub2; cp -r sub2 sub; echo obey >> sub/AGENTS.md; rm -rf sub2".into(),
            "ln .git/config alias; echo evil >> alias; ln AGENTS.md b; echo obey >> b; rm -f alias b".into(),
            "echo obey > AGENTS.md; mv AGENTS.md c; rm -f c; ln -s /etc/passwd AGENTS.md; rm -f AGENTS.md".into(),
            "mkdir -p .vscode .github/workflows new/.idea; echo {} > .vscode/tasks.json; echo on > .github/workflows/x.yml; echo evil > .envrc".into(),
            "mkdir bare; cd bare; mkdir objects refs; echo ref: refs/heads/x > HEAD; printf '[core]\\nfsmonitor = touch pwn\\n' > config".into(),
            // A setting on its section's line; settings in another folder; a repository around the files.
            "git init -q keyed; printf '[remote \"o\"]uploadpack = touch pwn #]\\n' >> keyed/.git/config".into(),
            "mkdir -p evil/objects evil/refs; printf '[core]\\nfsmonitor = touch pwn\\n' > evil/config; echo ../evil > .git/commondir".into(),
            "mkdir tied; cd tied; echo ref: refs/heads/x > HEAD; echo ../evil > commondir".into(),
            "git init -q wt; cd wt; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git worktree add -q ../wt2; git worktree add -q ../wt3; echo ../../../../evil > .git/worktrees/wt2/commondir; printf '[core]\\nfsmonitor = touch pwn\\n' > .git/worktrees/wt3/config.worktree".into(),
            "mkdir objects refs deep; echo ref: refs/heads/x > HEAD; echo obey > CLAUDE.md; echo evil > deep/.envrc".into(),
            "rmdir objects refs; rm HEAD".into(),
            "mkdir -p outer/objects outer/refs outer/in; cd outer; echo ref: refs/heads/x > HEAD; echo obey > GEMINI.md; echo obey > in/GEMINI.md".into(),
            "unshare -Ur true || unshare -m true || umount .git || mount -t tmpfs x .git; echo; true".into(),
        ];
        let cases: Vec<_> = commands
            .iter()
            .map(|command| (command.as_str(), ""))
            .collect();
        let stage = stage(level, &cases);
        let root = stage.world.path();
        git(&root, &["init", "-q"]);
        write(&root.join("AGENTS.md"), "be good\n");
        write(&root.join("sub/AGENTS.md"), "be good\n");
        let protected = |root: &Path| {
            let mut all = contents(root);
            all.retain(|(path, _)| {
                !path.components().any(|part| {
                    let name = part.as_os_str().to_string_lossy();
                    let made = [
                        "bare", "new", ".github", "sub2", "keyed", "tied", "evil", "wt", "wt2",
                        "wt3", "deep", "outer",
                    ];
                    name.contains(".held") || made.contains(&&*name)
                })
            });
            all
        };
        let before = protected(&root);
        check_all(&stage, &cases);
        let after = protected(&root);
        let gone: Vec<_> = before
            .iter()
            .filter(|entry| !after.contains(entry))
            .collect();
        let new: Vec<_> = after
            .iter()
            .filter(|entry| !before.contains(entry))
            .collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "{level:?}: gone {gone:#?}\nnew {new:#?}"
        );
        for name in [
            ".envrc",
            ".vscode",
            ".github/workflows",
            "new/.idea",
            "bare/config",
            "keyed/.git/config",
            ".git/commondir",
            "tied/commondir",
            "wt/.git/worktrees/wt2/commondir",
            "wt/.git/worktrees/wt3/config.worktree",
            "CLAUDE.md",
            "deep/.envrc",
            "outer/GEMINI.md",
            "outer/in/GEMINI.md",
            ".git/hooks/pre-commit",
        ] {
            assert!(!root.join(name).exists(), "{level:?}: {name} is there");
        }
        assert!(root.join("wt/.git/worktrees/wt3/commondir").exists());
        assert!(!root.join("pwn").exists());
    }
}

#[test]
fn everyday_commands_work() {
    for level in HOLDING {
        let commands = [
            (
                "git add -A && git -c user.name=a -c user.email=a@b commit -qm first && git log --oneline | cat",
                "first",
            ),
            (
                "git checkout -qb topic && echo more >> a && git -c user.name=a -c user.email=a@b commit -qam second && git stash list && git gc -q && git log --oneline | wc -l",
                "2\n",
            ),
            (
                "mkdir inner && cd inner && git init -q && git add . && git status --short && ls .git/config && cd .. && rm -rf inner",
                ".git/config",
            ),
            (
                "mkdir -p target && echo ok > target/x && cat target/x",
                "ok\n",
            ),
            (
                "f=$(mktemp) && echo kept > $f && cat $f && echo $f > name",
                "kept\n",
            ),
            ("cat $(cat name)", "kept\n"),
            (
                "python3 -m venv --without-pip env && env/bin/python -c 'print(6 * 7)'",
                "42\n",
            ),
            (
                "cat > sum.c <<'X'\nint main() { return 0; }\nX\ncc sum.c -o sum && ./sum && echo built",
                "built\n",
            ),
            (
                "node -e 'require(\"child_process\").exec(\"echo child\", (e, out) => console.log(out))'",
                "child\n",
            ),
            ("npm test 2>&1", "# pass 1"),
            (
                "sh -c 'sleep 0.01 & wait' && seq 3 | xargs -P 3 -n 1 echo | sort | tail -1",
                "3\n",
            ),
        ];
        let stage = stage(level, &commands);
        git(&stage.world.path(), &["init", "-q"]);
        stage.world.write("a", "1");
        stage.world.write(
            "package.json",
            r#"{ "name": "one", "scripts": { "test": "node --test" } }"#,
        );
        stage.world.write(
            "test/adds.js",
            "require('node:test')('adds', () => require('assert').equal(1 + 1, 2));",
        );
        check_all(&stage, &commands);
    }
}

#[test]
fn worktrees_commit_into_their_repository_and_cannot_add_hooks() {
    for level in HOLDING {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().canonicalize().unwrap();
        let commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm second && git log --oneline | wc -l";
        let evil = format!(
            "echo evil > {0}/.git/hooks/pre-commit; echo evil >> {0}/.git/config; echo x > {0}/new",
            main.display()
        );
        let stage = stage(level, &[(commit, ""), (&evil, "")]);
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
        let root = stage.world.path();
        let _not_on_every_level = std::fs::remove_file(root.join("unsaved"));
        git(
            &main,
            &[
                "worktree",
                "add",
                "-q",
                "-f",
                "-b",
                "side",
                root.to_str().unwrap(),
            ],
        );
        stage.world.write("a", "1");
        let config = std::fs::read_to_string(main.join(".git/config")).unwrap();
        check_all(&stage, &[(commit, "2\n"), (&evil, "")]);
        assert_eq!(
            std::fs::read_to_string(main.join(".git/config")).unwrap(),
            config,
            "{level:?}"
        );
        assert!(
            !main.join(".git/hooks/pre-commit").exists() && !main.join("new").exists(),
            "{level:?}"
        );
    }
}

#[test]
fn cargo_builds_offline_wherever_the_toolchain_is() {
    let place = |name, folder| {
        std::env::var_os(name)
            .map_or_else(|| std::env::home_dir().unwrap().join(folder), PathBuf::from)
    };
    let toolchains = [
        ("CARGO_HOME", place("CARGO_HOME", ".cargo")),
        ("RUSTUP_HOME", place("RUSTUP_HOME", ".rustup")),
    ];
    let levels = [Level::Best, Level::Landlock];
    for (level, is_in_home) in levels
        .into_iter()
        .flat_map(|level| [(level, true), (level, false)])
    {
        let mut stage = Stage::new(
            level,
            &[json!({ "command": "cargo test --offline --lib 2>&1", "timeout_s": 120 })],
        );
        stage.world.write(
            "Cargo.toml",
            "[package]\nname = \"one\"\nedition = \"2021\"\n[dependencies]\nitoa = \"1\"\n",
        );
        stage.world.write(
            "src/lib.rs",
            "#[test]\nfn adds() { assert_eq!(itoa::Buffer::new().format(1 + 1), \"2\"); }\n",
        );
        let home = stage.home.path().join("me");
        std::fs::create_dir_all(&home).unwrap();
        if is_in_home {
            for ((_, real), name) in toolchains.iter().zip([".cargo", ".rustup"]) {
                std::os::unix::fs::symlink(real, home.join(name)).unwrap();
            }
        } else {
            stage.toolchains = toolchains.to_vec();
        }
        let told = stage.results().remove(0);
        assert!(
            told.contains("test result: ok. 1 passed"),
            "{level:?}, in the home folder: {is_in_home}: {told}"
        );
    }
}

#[test]
fn without_a_sandbox_the_permission_request_says_so() {
    let sandboxed = |level| {
        let stage = Stage::new(level, &[run("echo x")]);
        let mut client = stage.client();
        let session = client.session(&stage.world);
        let prompt = client.prompt(&session, "go");
        let question = client.next("session/request_permission");
        let title = question["params"]["toolCall"]["title"]
            .as_str()
            .unwrap()
            .to_owned();
        allow(&mut client, &question);
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
        title
    };
    assert_eq!(sandboxed(Level::Best), "Run `echo x`");
    assert_eq!(sandboxed(Level::None), "Run `echo x` (without a sandbox)");
}

#[test]
fn without_a_shared_localhost_the_permission_request_and_the_result_say_so() {
    let serve = r#"python3 -c "import socket; socket.create_server(('127.0.0.1', 0)).accept()""#;
    let stage = Stage::new(Level::Landlock, &[run(serve)]);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    let shown = question["params"]["toolCall"]["content"].to_string();
    assert!(
        shown.contains("in the sandbox, without network or a shared localhost"),
        "{shown}"
    );
    allow(&mut client, &question);
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    let requests = stage.world.rehearsal().requests();
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("commands share no localhost here"), "{told}");
}

#[test]
fn whether_bubblewrap_works_is_tried_once_for_all_sessions() {
    let home = tempfile::tempdir().unwrap();
    // In its place, a program that counts its starts.
    let (program, starts) = (home.path().join("bwrap"), home.path().join("starts"));
    let real = std::env::split_paths(&std::env::var("PATH").unwrap())
        .map(|folder| folder.join("bwrap"))
        .find(|program| program.exists())
        .unwrap();
    let counting = format!(
        "#!/bin/sh\necho >> {}\nexec {} \"$@\"\n",
        starts.display(),
        real.display()
    );
    write(&program, &counting);
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!(
        "{}:{}",
        home.path().display(),
        std::env::var("PATH").unwrap()
    );
    let stage = Stage {
        world: World::new(
            json!([[{ "text": "One." }], [{ "text": "Two." }], [{ "call": { "id": "c", "name": "run_command", "arguments": run("echo ran") } }], [{ "text": "Ran." }]]),
        ),
        home,
        level: Level::Best,
        toolchains: vec![("PATH", path.into())],
    };
    let started = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let mut client = stage.client();
    for _ in 0..2 {
        let session = client.session(&stage.world);
        assert_eq!(finish(&mut client, &session), "end_turn");
        assert_eq!(started(), 2, "a network, and a sandbox in it");
    }
    // A session without a command has no network yet.
    let session = client.session(&stage.world);
    assert_eq!(finish(&mut client, &session), "end_turn");
    assert_eq!(started(), 4, "the network of this session, and the command");
}
