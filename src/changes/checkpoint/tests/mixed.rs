//! Tools and commands of one turn changing the same file in sequence.

use super::*;

#[tokio::test]
async fn a_tool_edit_is_undone_after_a_command_made_the_file_binary() {
    for text in ["", "written\n"] {
        let mut fixture = Fixture::new();
        fixture.write("a.txt", b"x\ny\n");
        let before = fixture.tree();
        assert!(fixture.tool(1, "a.txt", whole(text)).await);
        fixture
            .command(1, |fixture| fixture.write("a.txt", b"\0"))
            .await;
        there_and_back(before, fixture).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn chmod_after_a_tool_edit_is_undone_and_redone() {
    for is_new in [true, false] {
        let mut fixture = Fixture::new();
        if !is_new {
            fixture.write("a.txt", b"x\n");
        }
        let before = fixture.tree();
        fixture
            .command(1, |fixture| {
                fixture.write("a.txt", b"y\n");
                set_mode(&fixture.path("a.txt"), 0o755);
            })
            .await;
        assert!(fixture.tool(1, "a.txt", whole("z\n")).await);
        there_and_back(before, fixture).await;
    }
}

#[tokio::test]
async fn removed_bytes_are_restored_after_a_tool_rewrote_the_file() {
    let mut fixture = Fixture::new();
    fixture.write("a.bin", b"\0mine");
    let before = fixture.tree();
    fixture
        .command(1, |fixture| {
            std::fs::remove_file(fixture.path("a.bin")).unwrap();
        })
        .await;
    assert!(fixture.tool(1, "a.bin", whole("x\n")).await);
    there_and_back(before, fixture).await;
}
