//! A process killed while it writes leaves the old or the new file, and its temporary files are swept.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// The directory in which the process to be killed works.
const FOLDER: &str = "TANDEM_TEST_CRASH";

fn content(letter: &str) -> String {
    letter.repeat(256 * 1024)
}

#[tokio::test]
#[ignore = "writes until it is killed, by the test below"]
async fn writes_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let root = Arc::new(Root::open(Path::new(&folder)).unwrap());
    let workspace = Workspace::new(
        vec![root],
        Documents::new(Encoding::Utf16),
        Arc::new(NoEditor),
    );
    for letter in ["b", "a"].iter().cycle() {
        commit(&workspace, "a.txt", &write(&content(letter)))
            .await
            .unwrap();
    }
}

/// The file's size, from its directory entry: on Windows, an open file cannot be replaced.
fn size(fixture: &Fixture) -> Option<u64> {
    let files = std::fs::read_dir(fixture.ws()).unwrap().map(Result::unwrap);
    files
        .filter(|file| file.file_name() == "a.txt")
        .map(|file| file.metadata().unwrap().len())
        .next()
}

#[tokio::test]
async fn a_killed_process_leaves_the_old_file_or_the_new_one() {
    let fixture = Fixture::new();
    for round in 0..24 {
        fixture.write("a.txt", "start");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "workspace::tests::crash::writes_until_killed",
            ])
            .env(FOLDER, fixture.ws())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while size(&fixture) == Some(5) {
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "the process to be killed does not write"
            );
            std::thread::yield_now();
        }
        // At a different moment each time.
        let moment = Instant::now();
        while moment.elapsed() < Duration::from_micros(97 * round) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = String::from_utf8(fixture.bytes("a.txt")).unwrap();
        assert!(
            left == content("a") || left == content("b"),
            "torn after {} bytes in round {round}",
            left.len()
        );
    }
    commit(&fixture.workspace(), "a.txt", &write("end"))
        .await
        .unwrap();
    assert_eq!(
        std::fs::read_dir(fixture.ws()).unwrap().count(),
        1,
        "leftovers of killed processes are removed"
    );
}
