"""A conversation with `tandem acp` by another official client: PyPI agent-client-protocol, whose models are strict.

The model is the scripted one of the editor tests. usage: acp_client.py (TANDEM_BIN names the program)
"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import acp
from acp import spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = [
    [
        {"text": "Wri"},
        {"text": "ting."},
        {
            "call": {"id": "c1", "name": "write_file", "arguments": {"path": "new.txt", "content": "new\n"}},
            "fragments": 5,
        },
    ],
    [{"text": " Written."}],
]


class Client(acp.Client):
    """Allows everything and records what it receives."""

    def __init__(self):
        self.text = ""
        self.kinds = []
        self.diffs = []

    async def request_permission(self, options, session_id, tool_call, **_):
        self.diffs += [(item.path, item.new_text) for item in tool_call.content if item.type == "diff"]
        option = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def session_update(self, session_id, update, **_):
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text


def environment(home, port):
    settings = {
        "TANDEM_MODEL": "test",
        "TANDEM_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "TANDEM_CONFIG": f"{home}/config.toml",
        "TANDEM_STATE_DIR": f"{home}/state",
    }
    return {"PATH": "/usr/bin:/bin", "HOME": home, **settings}


async def talk(folder, port):
    client = Client()
    program = os.environ["TANDEM_BIN"]
    home = f"{folder}/.home"
    patient = {"shutdown_timeout": 60}  # the SDK then ends a process that may have ended just now, and fails
    async with spawn_agent_process(client, program, "acp", env=environment(home, port), transport_kwargs=patient) as (agent, _process):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert hello.agent_info.name == "tandem", hello
        session = await agent.new_session(cwd=folder, mcp_servers=[])
        answer = await agent.prompt(session_id=session.session_id, prompt=[text_block("write new.txt")])
    assert answer.stop_reason == "end_turn", answer
    assert client.text == "Writing. Written.", client.text
    assert client.diffs == [(f"{folder}/new.txt", "new\n")], client.diffs
    assert {"tool_call", "tool_call_update"} <= set(client.kinds), client.kinds
    assert pathlib.Path(folder, "new.txt").read_text() == "new\n"


def main():
    server = [sys.executable, ROOT / "tests/editors/model_server.py"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as model:
        try:
            port = int(model.stdout.readline().removeprefix("PORT "))
            script = json.dumps(SCRIPT).encode()
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ctl/script", script).close()
            with tempfile.TemporaryDirectory(prefix="tandem-peers-") as folder:
                asyncio.run(asyncio.wait_for(talk(os.path.realpath(folder), port), 120))
        finally:
            model.kill()
    print("ok acp python sdk: a file is written with permission\n1 passed, 0 failed")


main()
