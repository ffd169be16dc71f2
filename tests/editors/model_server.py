#!/usr/bin/env python3
"""A scripted model behind a real HTTP socket, for tests that drive real editors (standard library only).

Prints `PORT <n>` and then answers, on 127.0.0.1:

    POST /v1/chat/completions   streams the next scripted reply as OpenAI-compatible SSE
    POST /v1/completions        the same, for replies with a status and a body
    POST /ctl/script            appends a JSON list of replies; each completion consumes one
    POST /ctl/open/NAME         opens a gate, also before a reply reaches it
    POST /ctl/models/refuse     refuses to list models, until /ctl/models/offer or a reset
    POST /ctl/reset             forgets everything and hangs up on running replies
    GET  /ctl/state             {requests: [bodies], waiting: [gates], consumed, closed_early, played_seconds}

A reply is a list of steps, run in order:

    {"text": "…"}                                     one content delta
    {"reasoning": "…"}                                one reasoning delta
    {"words": "a long text", "delay_ms": 5}           content, word by word
    {"call": {"id", "name", "arguments"}, "fragments": 8, "delay_ms": 0}
                                                      a tool call, its arguments in pieces; arguments given
                                                      as a string are sent as they are, valid JSON or not
    {"gate": "name"}                                  holds the stream until the gate is opened
    {"hang": true}                                    holds it for ever
    {"drop": true}                                    ends the connection there
    {"status": 401, "body": {…}, "headers": {…}}      an HTTP error instead of a stream (must be the only step)

The finish reason is derived (`tool_calls` when the reply has calls, `stop` otherwise); usage and `[DONE]` follow.

Tests never sleep: `GET /ctl/state?wait=gate:NAME`, `?wait=requests:N` and `?wait=closed:N` answer as soon as a stream is
held at the gate, N requests have come, or N clients have hung up on a running reply; after a minute with 504 and the state.
"""

import asyncio
import json
import re
import sys
import time
from urllib.parse import parse_qs, unquote, urlsplit

WAIT_SECONDS = 60
STEPS = {"text", "reasoning", "words", "call", "gate", "hang", "drop", "status"}


class State:
    """All state that tests can see or set; `changed` wakes the long polls and the held streams."""

    def __init__(self):
        self.changed = asyncio.Condition()
        self.running = set()
        self.clear()

    def clear(self):
        self.replies = []
        self.requests = []
        self.waiting = []
        self.opened = set()
        self.consumed = 0
        self.closed_early = 0
        self.offers_models = True
        self.played_seconds = 0  # how long the last reply took to stream

    def public(self):
        keys = ("requests", "waiting", "consumed", "closed_early", "played_seconds")
        return {key: getattr(self, key) for key in keys}

    async def notify(self):
        async with self.changed:
            self.changed.notify_all()

    async def until(self, ready):
        async with self.changed:
            await self.changed.wait_for(ready)

    async def hold(self, gate):
        self.waiting.append(gate)
        await self.notify()
        try:
            await self.until(lambda: gate in self.opened)
        finally:
            self.waiting.remove(gate)


class Stream:
    """One streamed chat completion: server-sent events in HTTP chunks."""

    def __init__(self, writer, request, number):
        self.writer = writer
        self.base = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request.get("model", "test"),
        }
        self.prompt_tokens = len(json.dumps(request)) // 4
        self.deltas = 0
        self.calls = 0

    async def chunk(self, payload):
        self.writer.write(b"%x\r\n%s\r\n" % (len(payload), payload))
        await self.writer.drain()

    async def event(self, data):
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        await self.chunk(f"data: {text}\n\n".encode())

    async def choice(self, delta, finish_reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        await self.event({**self.base, "choices": [choice]})

    async def delta(self, delta, delay_ms=0):
        await asyncio.sleep(delay_ms / 1000)
        self.deltas += 1
        await self.choice(delta)

    async def words(self, words, delay_ms):
        """One delta per word, on a schedule: time lost to rounding is made up."""
        began = time.monotonic()
        for count, word in enumerate(words, 1):
            await asyncio.sleep(max(0, began + count * delay_ms / 1000 - time.monotonic()))
            await self.delta({"content": word})

    async def call(self, call, fragments, delay_ms):
        index, self.calls = self.calls, self.calls + 1
        arguments = call["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        head = {"index": index, "id": call["id"], "type": "function"}
        head["function"] = {"name": call["name"], "arguments": ""}
        await self.delta({"tool_calls": [head]}, delay_ms)
        for piece in pieces(arguments, fragments):
            part = {"index": index, "function": {"arguments": piece}}
            await self.delta({"tool_calls": [part]}, delay_ms)

    async def begin(self):
        self.writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        await self.choice({"role": "assistant", "content": ""})

    async def end(self):
        await self.choice({}, "tool_calls" if self.calls else "stop")
        usage = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.deltas,
            "total_tokens": self.prompt_tokens + self.deltas,
        }
        await self.event({**self.base, "choices": [], "usage": usage})
        await self.event("[DONE]")
        await self.chunk(b"")


def pieces(text, count):
    """`text` cut into at most `count` parts of nearly equal length."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


async def play(state, stream, steps):
    """Runs the steps of one reply."""
    began = time.monotonic()
    await stream.begin()
    for step in steps:
        delay_ms = step.get("delay_ms", 0)
        match step:
            case {"text": text}:
                await stream.delta({"content": text}, delay_ms)
            case {"reasoning": text}:
                await stream.delta({"reasoning_content": text}, delay_ms)
            case {"words": text}:
                await stream.words(re.findall(r"\s*\S+\s*$|\s*\S+", text), delay_ms)
            case {"call": call}:
                await stream.call(call, step.get("fragments", 1), delay_ms)
            case {"gate": gate}:
                await state.hold(gate)
            case {"hang": True}:
                await asyncio.Event().wait()
            case {"drop": True}:
                raise ConnectionAbortedError
    await stream.end()
    state.played_seconds = time.monotonic() - began


def respond(writer, status, body, headers=()):
    data = json.dumps(body, ensure_ascii=False).encode()
    lines = [f"HTTP/1.1 {status} Scripted", "content-type: application/json"]
    lines += [f"content-length: {len(data)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in dict(headers).items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)


async def complete(state, reader, writer, request):
    """Answers one completion with the next reply, and notices when the client hangs up before its end."""
    state.requests.append(request)
    await state.notify()
    if not state.replies:
        message = f"the script has no reply for request {len(state.requests)}"
        respond(writer, 500, {"error": {"message": message, "type": "script"}})
        return
    steps = state.replies.pop(0)
    state.consumed += 1
    if steps and "status" in steps[0]:
        error = steps[0]
        respond(writer, error["status"], error.get("body", {}), error.get("headers", {}))
        return
    reply = asyncio.create_task(play(state, Stream(writer, request, state.consumed), steps))
    hangup = asyncio.create_task(reader.read())
    state.running.add(reply)
    await asyncio.wait({reply, hangup}, return_when=asyncio.FIRST_COMPLETED)
    state.running.discard(reply)
    unfinished = reply.cancel()
    hangup.cancel()
    [end, _] = await asyncio.gather(reply, hangup, return_exceptions=True)
    if unfinished or isinstance(end, ConnectionError):
        state.closed_early += 1
        await state.notify()
    elif isinstance(end, Exception):
        print(f"reply {state.consumed} of the script: {end!r}", file=sys.stderr, flush=True)


def checked(replies):
    """Returns `replies` after checking that every step is known: a mistake in a test fails where it was made."""
    for step in (step for reply in replies for step in reply):
        if STEPS.isdisjoint(step):
            raise ValueError(f"no such step: {step}")
    return replies


def condition(state, wait):
    """The predicate for `?wait=gate:NAME`, `requests:N` or `closed:N`."""
    kind, _, value = wait.partition(":")
    match kind:
        case "gate":
            return lambda: value in state.waiting
        case "requests":
            return lambda: len(state.requests) >= int(value)
        case "closed":
            return lambda: state.closed_early >= int(value)
    raise ValueError(f"wait={wait}: expected gate:NAME, requests:N or closed:N")


async def control(state, writer, method, target, body):
    """The `/ctl/` routes, with which a test controls the model."""
    query = parse_qs(target.query)
    match method, target.path.removeprefix("/ctl/").split("/"):
        case "GET", ["state"]:
            status = 200
            if "wait" in query:
                ready = state.until(condition(state, query["wait"][0]))
                try:
                    await asyncio.wait_for(ready, WAIT_SECONDS)
                except asyncio.TimeoutError:
                    status = 504
            respond(writer, status, state.public())
            return
        case "POST", ["script"]:
            state.replies += checked(json.loads(body))
        case "POST", ["open", name]:
            state.opened.add(unquote(name))
        case "POST", ["models", "offer" | "refuse" as how]:
            state.offers_models = how == "offer"
        case "POST", ["reset"]:
            for reply in state.running:
                reply.cancel()
            await asyncio.gather(*state.running, return_exceptions=True)
            state.clear()
        case _:
            raise ValueError(f"no such route: {method} {target.path}")
    await state.notify()
    respond(writer, 200, {})


async def serve(state, reader, writer):
    """One HTTP/1.1 request per connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _ = head.split(" ", 2)
        length = re.search(r"^content-length: *(\d+)", head, re.I | re.M)
        body = await reader.readexactly(int(length[1])) if length else b""
        target = urlsplit(path)
        if target.path.startswith("/ctl/"):
            await control(state, writer, method, target, body)
        elif (method, target.path) in (("POST", "/v1/chat/completions"), ("POST", "/v1/completions")):
            await complete(state, reader, writer, json.loads(body))
        elif (method, target.path) == ("GET", "/v1/models"):
            if state.offers_models:
                respond(writer, 200, {"object": "list", "data": [{"id": "test", "object": "model"}]})
            else:
                respond(writer, 403, {"error": {"message": "no models for you"}})
        else:
            respond(writer, 404, {"error": {"message": f"no such route: {method} {path}"}})
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client disconnected: `complete` has counted it if that matters
    except (ValueError, KeyError) as error:
        respond(writer, 400, {"error": {"message": f"{type(error).__name__}: {error}"}})
    finally:
        writer.close()


async def main():
    state = State()
    server = await asyncio.start_server(
        lambda reader, writer: serve(state, reader, writer), "127.0.0.1", 0, limit=1 << 24
    )
    print("PORT", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
