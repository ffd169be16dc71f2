"""A language server's client over standard streams: messages out, messages in (standard library only)."""

import json


class Peer:
    """The client's end of a running server."""

    def __init__(self, process):
        self.process = process
        self.last = 0

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        """Sends a request; returns its id."""
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        return self.last

    def receive(self):
        """The next message; None when the server has ended."""
        length = None
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return None if length is None else json.loads(self.process.stdout.read(length))


def is_answer(message, number):
    """Whether a message answers the request with this id."""
    return message.get("id") == number and "method" not in message
