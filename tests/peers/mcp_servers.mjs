// Eight third-party MCP servers with real tools: each starts, lists its tools and answers a call; then it is killed, and the
// next prompt of the same session calls it again. The model is npm @copilotkit/aimock, the client npm @agentclientprotocol/sdk.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { converse, prompt } from './converse.mjs';
import { finish, freePort, load, peers, test, withFolder } from './harness.mjs';

const { agent } = (await load('@agentclientprotocol/sdk')).methods;
const { LLMock } = await load('@copilotkit/aimock');

const npm = (name, ...args) => [process.execPath, path.join(peers, 'node_modules/@modelcontextprotocol', name, 'dist/index.js'), ...args];
const python = (...args) => [path.join(peers, 'python/bin/python'), ...args];

const page = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<h1>Grüße</h1><p>from a page</p>'));
await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve));
const address = `http://127.0.0.1:${page.address().port}/`;

// One server for each of the newest SDKs, both of which support the current protocol version.
const typescript = `
  import { McpServer } from '@modelcontextprotocol/server';
  import { serveStdio } from '@modelcontextprotocol/server/stdio';
  import { z } from 'zod';
  serveStdio(() => {
    const server = new McpServer({ name: 'adder', version: '1' });
    const inputSchema = z.object({ a: z.number(), b: z.number() });
    server.registerTool('add', { inputSchema }, ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }));
    return server;
  });`;
const fastmcp = `
import sys
from fastmcp import FastMCP
server = FastMCP("adder")
@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
`;

const entity = { name: 'Ada', entityType: 'person', observations: ['wrote a program'] };
const sum = ['add', { a: 19, b: 23 }, /^\s*42/];
// Each with the calls before and after the kill, and the expected results. `FOLDER` is the workspace.
const SERVERS = {
  everything: { command: () => npm('server-everything', 'stdio'), calls: [['echo', { message: 'Grüße' }, /^Echo: Grüße$/]] },
  'everything, over HTTP': {
    http: () => npm('server-everything', 'streamableHttp'), calls: [['get-sum', { a: 19, b: 23 }, /42/]],
  },
  filesystem: { command: (folder) => npm('server-filesystem', folder), calls: [['read_text_file', { path: 'FOLDER/note.txt' }, /^a note$/m]] },
  memory: {
    command: () => npm('server-memory'),
    calls: [['create_entities', { entities: [entity] }, /wrote a program/], ['search_nodes', { query: 'Ada' }, /wrote a program/]],
  },
  git: { command: (folder) => python('-m', 'mcp_server_git', '--repository', folder), calls: [['git_status', { repo_path: 'FOLDER' }, /note\.txt/]] },
  time: {
    command: () => python('-m', 'mcp_server_time', '--local-timezone', 'UTC'),
    calls: [['convert_time', { source_timezone: 'Asia/Tokyo', time: '12:00', target_timezone: 'UTC' }, /T03:00:00/]],
  },
  fetch: { command: () => python('-m', 'mcp_server_fetch', '--ignore-robots-txt', '--allow-private-ips'), calls: [['fetch', { url: address }, /from a page/]] },
  'FastMCP, over HTTP': { http: (folder, port) => python(path.join(folder, '.home/server.py'), port), calls: [sum] },
  'the newest TypeScript SDK': { command: (folder) => [process.execPath, path.join(folder, '.home/server.mjs')], calls: [sum] },
};

// listening PORT COMMAND: returns the process once it accepts connections.
async function listening(port, [program, ...args]) {
  const server = spawn(program, args, { env: { ...process.env, PORT: port }, stdio: 'ignore' });
  for (;;) {
    assert.equal(server.exitCode, null, 'the server ended');
    const socket = connect(port, '127.0.0.1');
    const open = await once(socket, 'connect').catch(() => undefined);
    socket.destroy();
    if (open) return server;
    await setTimeout(20);
  }
}

// child OF COMMAND: returns the ID of the process that OF started with this command.
function child(of, command) {
  const children = readFileSync(`/proc/${of}/task/${of}/children`, 'utf8').trim().split(' ');
  return Number(children.find((id) => readFileSync(`/proc/${id}/cmdline`, 'utf8') === `${command.join('\0')}\0`));
}

const model = new LLMock({ port: 0, logLevel: 'warn' });
await model.start();
const settings = { TANDEM_BASE_URL: `${model.url}/v1`, TANDEM_MODEL: 'gpt-4o' };

for (const [name, { command, http, calls: [before, after = before] }] of Object.entries(SERVERS)) {
  await test(`${name}: it is called, killed and called again`, () => withFolder(async (folder) => {
    execFileSync('git', ['init', '-q', folder]);
    await mkdir(path.join(folder, '.home'));
    await symlink(path.join(peers, 'node_modules'), path.join(folder, '.home/node_modules'));
    const files = { 'note.txt': 'a note\n', '.home/server.py': fastmcp, '.home/server.mjs': typescript };
    for (const [file, content] of Object.entries(files)) await writeFile(path.join(folder, file), content);
    const port = http && await freePort();
    const started = http?.(folder, port) ?? command(folder);
    let server = http && await listening(port, started);
    const config = http ? `url = "http://127.0.0.1:${port}/mcp"`
      : `command = ${JSON.stringify(started)}\nenv = { MEMORY_FILE_PATH = "${folder}/memory.jsonl" }`;
    await writeFile(path.join(folder, '.home/config.toml'), `[limits]\nconnect-timeout = 60\n[mcp.other]\n${config}\n`);
    try {
      await converse(folder, settings, 'allow_once', async (agentSide, sessionId, heard) => {
        const call = async (when, [tool, given, expected]) => {
          const userMessage = `${name}, ${when}`;
          const toolCalls = [{ name: `other__${tool}`, arguments: JSON.stringify(given).replaceAll('FOLDER', folder) }];
          model.on({ userMessage, hasToolResult: false }, { toolCalls }).on({ userMessage, hasToolResult: true }, { content: 'Called.' });
          heard.updates.length = 0;
          const { stopReason } = await agentSide.request(agent.session.prompt, prompt(sessionId, userMessage));
          assert.equal(stopReason, 'end_turn');
          const last = heard.updates.filter((update) => update.toolCallId && update.status).at(-1);
          assert.equal(last.status, 'completed', JSON.stringify(last));
          assert.match(last.content[0].content.text, expected, tool);
        };
        await call('before', before);
        const pid = server?.pid ?? child(heard.pid, started);
        process.kill(pid, 'SIGKILL');
        while (existsSync(`/proc/${pid}`)) await setTimeout(20);
        if (http) server = await listening(port, started);
        await call('after', after);
      });
    } finally {
      server?.kill();
    }
  }));
}

page.close();
await model.stop();
finish();
