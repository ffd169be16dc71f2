#!/usr/bin/env python3
"""Drives the real Helix ($HX) with the real tandem ($TANDEM_BIN) against a scripted model.

    tests/editors/helix.py [TEST…]

Standard library and tmux only. Each test has its own project, its own Helix and its own model. Screens of failed tests go
to $TANDEM_TEST_OUT. The last line is `N passed, N failed`.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import traceback

from again import really_failed
from helix_driver import CHAT, CODE, CONFIG, HX, Helix, Model, question, session


class Skipped(Exception):
    """Why a test has nothing to test here."""


# A permission request in the chat, or in a menu.
ASKS = r"(Allow\* or|Always \(session\))"

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def edit(*replacements):
    """A call that replaces texts in src/lib.rs."""
    edits = [{"old_text": old, "new_text": new} for old, new in replacements]
    return {"call": {"id": "call_1", "name": "edit_file", "arguments": {"path": "src/lib.rs", "edits": edits}}}


@test
def configuration_lists_tandem_for_every_language():
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home, "helix")
        folder.mkdir()
        for name in ("languages.toml", "config.toml"):
            (folder / name).write_text((CONFIG / name).read_text())
        languages = tomllib.loads((CONFIG / "languages.toml").read_text())["language"]
        assert len(languages) > 20
        for language in languages:
            command, environment = [HX, "--health", language["name"]], {**os.environ, "XDG_CONFIG_HOME": home}
            health = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert "tandem" in health.stdout, f"{language['name']}: {health.stdout}{health.stderr}"


@test
def chat_file_answers_while_it_streams():
    reply = [{"words": "The first half,"}, {"gate": "middle"}, {"words": " and the second half."}]
    with session("notes.tandem.md", reply, [{"text": "Once more."}]) as (model, helix):
        helix.ask("How does streaming look?")
        asked = question(model.wait("gate:middle")["requests"][0])
        assert "How does streaming look?" in asked, asked + helix.screen()
        helix.shows("The first half,")
        assert "second half" not in helix.screen()
        model.open("middle")
        helix.shows("and the second half.")
        helix.shows(r"## tandem[\s\S]*## You")
        helix.command("w")
        exchange = "How does streaming look?\n\n## tandem\n\nThe first half, and the second half.\n\n## You\n"
        helix.saved("notes.tandem.md", lambda text: text.startswith(CHAT + exchange))
        # The save above sent nothing, so the next request is the second prompt, and it contains the first exchange.
        helix.ask("And again?")
        helix.shows("Once more.")
        requests = model.requests()
        assert len(requests) == 2, len(requests)
        assert "And again?" in question(requests[1])
        assert "and the second half." in json.dumps(requests[1]["messages"])


@test
def text_below_a_running_answer_is_the_next_question():
    reply = [{"words": "The first half,"}, {"gate": "middle"}, {"words": " and the second half."}]
    with session("notes.tandem.md", reply, [{"text": "Once more."}]) as (model, helix):
        helix.ask("How does streaming look?")
        model.wait("gate:middle")
        helix.shows(r"The first half,[\s\S]*## You")
        # The cursor moved to the next prompt's place, so the view follows the answer.
        helix.insert("A", "And again?")
        model.open("middle")
        helix.shows("and the second half.")
        helix.send()
        helix.shows("Once more.")
        next_one = r"half, and the second half\.\n\n## You\n{1,2}And again\?\n"
        helix.saved("notes.tandem.md", lambda text: re.search(next_one, text))
        assert "And again?" in question(model.requests()[1])


@test
def cursor_is_below_a_long_answer():
    lines = [{"text": f"line {number} of the answer\n\n"} for number in range(1, 80)]
    with session("notes.tandem.md", [*lines, {"gate": "end"}, {"text": "The end."}]) as (model, helix):
        helix.ask("Tell me a lot.")
        model.wait("gate:end")
        helix.shows(r"(?m)^ NOR .* 1\d\d:1\b")
        # Helix scrolls to the cursor on the next key, which here must not move it: a newer one's cursor isn't moved back.
        helix.keys("z", "z")
        helix.shows("line 79 of the answer")
        model.open("end")
        helix.insert("A", "And then?")
        helix.shows(r"The end\.\s+\d+\s+\d+ +## You[\s\S]*And then\?")


@test
def decision_takes_the_place_of_its_question():
    with session("notes.tandem.md", [edit(("a + b", "a - b"))], [{"text": "There you are."}]) as (_, helix):
        helix.ask("Subtract, please.")
        helix.shows(ASKS)
        helix.answer(r"Allow(?! for)")
        helix.shows("There you are.")
        helix.shows(r"> \*\*allowed:\*\* Edit src/lib.rs")
        helix.hides("Answer with a code action")


@test
def mention_is_completed_and_comes_along():
    with session("notes.tandem.md", [{"text": "It adds."}]) as (model, helix):
        helix.complete("geo", "What does @li", "src/lib.rs")
        helix.shows(r"What does @src/lib\.rs(?!\S)")
        helix.complete("A", " and @#ad", "fn add")
        helix.shows(r"@src/lib\.rs and @src/lib\.rs#L2-L4(?!\S)")
        helix.command("w")
        asked = question(model.wait("requests:1")["requests"][0])
        assert "From src/lib.rs (as it is now)" in asked, asked
        assert "From src/lib.rs, lines 2-4" in asked, asked


@test
def slash_command_is_completed_at_the_beginning_of_a_question():
    with session("notes.tandem.md") as (_, helix):
        helix.complete("geo", "/he", "/help")
        helix.shows("(?m)^ *[0-9]* +/help *$")
        helix.command("w")
        helix.shows("`/compact`: Summarize the session")


@test
def asking_about_a_selection_answers_in_a_chat_file():
    with session("src/lib.rs", [{"text": "It adds two numbers."}]) as (model, helix):
        helix.insert("ggO", "// typed, not saved")
        helix.type("%")
        helix.action("Ask about")
        request = model.wait("requests:1")["requests"][0]
        assert "// typed, not saved" in json.dumps(request["messages"])
        assert "pub fn add" in json.dumps(request["messages"])
        helix.shows("It adds two numbers.")
        helix.shows(r"\.tandem\.md")
        assert helix.read("src/lib.rs") == CODE


@test
def selection_offers_questions_before_undo():
    with session("notes.tandem.md", [edit(("a + b", "a - b"))], [{"text": "There you are."}]) as (_, helix):
        helix.ask("Subtract, please.")
        helix.shows(ASKS)
        helix.answer(r"Allow(?! for)")
        helix.shows("There you are.")
        helix.command("open src/lib.rs")
        helix.type("gg a")
        helix.shows("Undo the last turn")
        helix.shows(r"Ask about this[\s\S]*Undo the last turn")


@test
def instruction_in_a_comment_is_an_action():
    with session("src/lib.rs", [{"text": "I would use checked_add."}]) as (model, helix):
        helix.insert("ggo", "// AI! never overflow")
        helix.action("AI! never overflow")
        assert "never overflow" in question(model.wait("requests:1")["requests"][0])
        helix.shows("I would use checked_add.")


@test
def edit_waits_for_permission_and_is_one_undo_step():
    call = {**edit(("a + b // unsaved", "a.wrapping_add(b)")), "fragments": 6}
    with session("src/lib.rs", [call], [{"text": "It cannot overflow now."}]) as (model, helix):
        helix.type("ggjj")
        helix.insert("A", " // unsaved")
        helix.type("%")
        helix.action("Edit")
        helix.shows(r"wrapping_add[\s\S]*" + ASKS)
        assert helix.read("src/lib.rs") == CODE
        helix.answer(r"Allow")
        helix.shows("It cannot overflow now.")
        helix.command("open src/lib.rs")
        helix.shows(r"a\.wrapping_add\(b\)")
        assert helix.read("src/lib.rs") == CODE, "the disk is touched before :w"
        helix.type("u")
        helix.hides("wrapping_add")
        helix.shows(r"a \+ b // unsaved")
        helix.type("U")
        helix.shows("wrapping_add")
        helix.command("w")
        helix.saved("src/lib.rs", lambda text: text == CODE.replace("a + b", "a.wrapping_add(b)"))


@test
def edit_is_in_the_menu_that_covers_the_chat():
    with session("notes.tandem.md", [edit(("a + b", "a - b"))], [{"text": "There you are."}]) as (_, helix):
        helix.ask("Subtract, please.")
        helix.shows(ASKS)
        if helix.has_message_menus:
            helix.shows(r"│ Allow\? Edit src/lib\.rs +│[\s\S]*│ - +a \+ b +│[\s\S]*│ \+ +a - b +│")
        helix.answer(r"Allow")
        helix.shows("There you are.")


@test
def question_is_a_hint_in_the_code_and_answered_there():
    with session("notes.tandem.md", [edit(("a + b", "a - b"))], [{"text": "There you are."}]) as (_, helix):
        helix.ask("Subtract, please.")
        helix.shows(ASKS)
        helix.close_menu()
        helix.command("open src/lib.rs")
        helix.type("3gg")
        helix.shows("Allow. Edit src/lib.rs")
        helix.action(r"Allow")
        helix.shows("a - b")
        helix.hides("Allow. Edit src")
        assert helix.read("src/lib.rs") == CODE, "the disk is touched before :w"


@test
def saving_all_files_does_not_send_a_half_written_prompt():
    with session("notes.tandem.md", [{"text": "Sent."}]) as (model, helix):
        helix.command("open src/lib.rs")
        helix.insert("ggO", "// typed")
        helix.command("open notes.tandem.md")
        helix.insert("geo", "Half a prom")
        helix.command("wa")
        helix.saved("notes.tandem.md", lambda text: "Half a prom" in text)
        helix.saved("src/lib.rs", lambda text: "// typed" in text)
        helix.shows("saved with other files")
        assert not model.requests()
        helix.command("w")
        helix.shows("Sent.")
        assert len(model.requests()) == 1


@test
def failed_command_shows_its_exit_code_and_the_end_of_its_output():
    run = {"call": {"id": "call_1", "name": "run_command", "arguments": {"command": "seq 1 40; exit 3"}}}
    serve = {"command": "sleep 1000", "background": True}
    server = {"call": {"id": "call_2", "name": "run_command", "arguments": serve}}
    with session("notes.tandem.md", [run], [server], [{"text": "So be it."}]) as (_, helix):
        helix.ask("Run the tests.")
        helix.shows(ASKS)
        helix.answer(r"Allow(?! for)")
        helix.shows(r"✗ Run `seq 1 40; exit 3`: exit 3")
        helix.answer(r"Allow(?! for)")
        # Helix scrolls to the cursor on the next key.
        helix.until(lambda _: helix.ended() == 1, "the end of the turn")
        helix.keys("Left")
        helix.shows(r"● Run `sleep 1000`: in the background")
        helix.shows("So be it.")
        helix.shows(r"39\s+\d+\s+40\s+\d+\s+\[exit code 3")


@test
def request_that_comes_while_one_types_elsewhere_is_in_the_status_line():
    with session("notes.tandem.md", [{"gate": "away"}, edit(("a + b", "a - b"))], [{"text": "Done."}]) as (model, helix):
        helix.ask("Subtract, please.")
        # What is typed while the answer begins stays: Helix closes its prompt when a server shows a document.
        helix.type(":open src/lib.rs")
        model.wait("gate:away")
        helix.shows(r"## tandem[\s\S]*## You")
        helix.shows(r"(?m)^:open src/lib\.rs\s*$")
        helix.keys("Enter")
        helix.hides(r"(?m)^:open")
        helix.type("ggO// typing")
        model.open("away")
        helix.shows(r"needs approval: Edit src/lib\.rs")
        helix.type(" on")
        helix.hides(r"needs approval: Edit src/lib\.rs")
        helix.shows(r"needs approval: Edit src/lib\.rs")


@test
def rejected_edit_changes_nothing():
    with session("notes.tandem.md", [edit(("a + b", "a - b"))], [{"text": "Left as it was."}]) as (model, helix):
        helix.ask("Break it, please.")
        helix.shows(r"a - b[\s\S]*" + ASKS)
        helix.close_menu()
        helix.command("lsp-workspace-command tandem.reject")
        helix.shows("Left as it was.")
        told = model.requests()[1]["messages"][-1]
        assert told["role"] == "tool" and "rejected this call" in told["content"], told
        assert helix.read("src/lib.rs") == CODE


@contextlib.contextmanager
def reviewed_session(*more):
    """A session whose first turn changed `add` and the line above it, in a file that is open and visible."""
    call = edit(("Adds two", "Sums two"), ("a + b", "a - b"))
    with session("notes.tandem.md", [call], [{"text": "There you are."}], *more) as (model, helix):
        helix.ask("Subtract, please.")
        helix.shows(ASKS)
        helix.answer(r"Allow(?! for)")
        helix.shows("There you are.")
        helix.command("open src/lib.rs")
        helix.shows("Sums two")
        yield model, helix


@test
def changed_hunk_is_rejected_at_the_cursor_and_the_model_is_told():
    with reviewed_session([{"text": "I see."}]) as (model, helix):
        helix.insert("ggO", "// typed since")
        helix.type("4gg")
        helix.action("Reject this change")
        helix.shows(r"a \+ b")
        helix.shows("Sums two")
        helix.shows("// typed since")
        helix.command("open notes.tandem.md")
        helix.ask("And now?")
        helix.shows("I see.")
        assert "the user rejected this change of yours in src/lib.rs" in question(model.requests()[2])


@test
def changed_line_is_a_hint_and_shows_what_stood_there():
    with reviewed_session() as (_, helix):
        helix.shows("●")
        helix.type("gg]d")
        helix.shows(r"tandem: \+1 −1")
        helix.type(" k")
        helix.shows(r"Before:[\s\S]*a \+ b")


@test
def place_in_an_answer_is_gone_to_and_tool_calls_show_their_output():
    read = {"call": {"id": "call_1", "name": "read_file", "arguments": {"path": "src/lib.rs"}}}
    with session("notes.tandem.md", [read], [{"text": "It is in src/lib.rs:3, I think."}]) as (_, helix):
        helix.ask("Where does it add?")
        helix.shows("I think")
        helix.search("✓ Read", "9:8")
        helix.type(" k")
        helix.shows("pub fn add")
        helix.close("pub fn add")
        helix.type(" s")
        helix.shows(r"string +Where does it add[\s\S]*function +✓ Read src/lib.rs")
        helix.close(r"string +Where does it add")
        helix.search("lib.rs:3", "11:21")
        helix.type("gd")
        helix.shows(r"(?m)^ NOR .*src/lib.rs")
        helix.shows(r"3:\d+\s*$")


@test
def last_turn_is_undone_and_redone():
    with reviewed_session() as (_, helix):
        helix.action("Undo the last turn")
        helix.shows("Adds two")
        helix.shows(r"a \+ b")
        helix.action("Redo the last undone turn")
        helix.shows("Sums two")
        helix.shows(r"a - b")
        helix.action("Keep the changes")
        helix.shows("kept all changes")


@test
def last_turn_is_reviewed_and_undone_after_a_restart():
    with reviewed_session([{"text": "I remember."}]) as (model, helix):
        helix.command("wa")
        helix.saved("src/lib.rs", lambda text: "a - b" in text)
        helix.saved("notes.tandem.md", lambda text: "There you are.\n\n## You" in text)
        helix.restart()
        helix.ask("And now?")
        helix.shows("I remember.")
        assert "a - b" in json.dumps(model.requests()[2]["messages"]), "the session goes on, with its calls"
        helix.command("open src/lib.rs")
        helix.type("gg]d")
        helix.shows(r"tandem: \+1 −1")
        helix.type("3gg")
        helix.action("Reject this change")
        helix.shows(r"a \+ b")
        helix.action("Undo the last turn")
        helix.shows("a - b")
        helix.action("Undo the last turn")
        helix.shows("Adds two")
        helix.shows(r"a \+ b")


@test
def clangd_runs_beside_tandem():
    if not shutil.which("clangd"):
        raise Skipped("there is no clangd")
    with session("notes.tandem.md", [{"text": "Declare it."}]) as (model, helix):
        (helix.project / "src/twice.c").write_text("int twice(int a) { return total(a) * 2; }\n")
        helix.command("open src/twice.c")
        helix.shows("●")
        helix.type("]d")
        helix.shows("mplicit declaration of function")
        helix.type("%")
        helix.action("Fix: ")
        assert "mplicit declaration" in question(model.wait("requests:1")["requests"][0])
        helix.shows("Declare it.")


@test
def ask_command_takes_a_question():
    with session("src/lib.rs", [{"text": "Forty-two."}]) as (model, helix):
        if not helix.has_message_menus:
            raise Skipped("this Helix sends commands without arguments")
        helix.command('lsp-workspace-command tandem.ask {"prompt": "What is the answer?"}')
        assert "What is the answer?" in question(model.wait("requests:1")["requests"][0])
        helix.shows("Forty-two.")


@test
def cancel_hangs_up_on_the_model():
    endless = [{"text": "I begin to"}, {"hang": True}]
    with session("notes.tandem.md", endless, [{"text": "Back again."}]) as (model, helix):
        helix.ask("Talk for ever.")
        helix.shows("I begin to")
        helix.command("lsp-workspace-command tandem.cancel")
        model.wait("closed:1")
        helix.shows("> stopped")
        helix.shows(r"## tandem[\s\S]*## You")
        helix.ask("Still there?")
        helix.shows("Back again.")


@test
def without_a_model_the_chat_says_what_to_do():
    with Model() as model, Helix("notes.tandem.md", {}) as helix:
        helix.ask("Anybody home?")
        helix.shows("(?i)no model")
        helix.shows("TANDEM_BASE_URL")
        for failures in (2, 3):
            helix.command("w")
            message = '"message":"tandem: no model'
            helix.until(lambda _, failures=failures: helix.wire().count(message) >= failures, "the reason again")
        chat = helix.read("notes.tandem.md")
        assert chat.count("**error:**") == 1 and chat.split("## You")[-1].strip() == "Anybody home?", chat
        config = pathlib.Path(helix.home.name) / "config/none.toml"
        config.write_text(f'model = "here/test"\n[providers.here]\nbase-url = "http://127.0.0.1:{model.port}/v1"\n')
        model.script([{"text": "Yes, since you saved it."}])
        helix.command("w")
        helix.shows("Yes, since you saved it.")
        assert question(model.requests()[0]).startswith("Anybody home?")


def play(function):
    """Why a test failed, if it did."""
    try:
        function()
    except Skipped:
        raise
    except Exception as error:
        traceback.print_tb(error.__traceback__, file=sys.stdout)
        return f"{type(error).__name__}: {error}"
    return None


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {function.__name__ for function in TESTS}
    if unknown:
        sys.exit(f"no such test: {', '.join(unknown)}")
    # If the run is stopped from outside, its Helix and its model are stopped, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    played = skipped = 0
    failures = {}
    for function in TESTS:
        if wanted and function.__name__ not in wanted:
            continue
        try:
            reason = play(function)
        except Skipped as why:
            skipped += 1
            print(f"skipped {function.__name__}: {why}", flush=True)
            continue
        played += 1
        if reason is not None:
            failures[function.__name__] = reason
            print(f"FAILED {function.__name__}: {reason}", flush=True)
        else:
            print(f"ok {function.__name__}", flush=True)
    failed = len(really_failed(failures, lambda name: play(globals()[name])))
    passed = played - failed
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
