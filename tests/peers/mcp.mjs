// The tools, prompts and resources of a third-party MCP server: npm @modelcontextprotocol/server-everything, over both transports. The model is npm
// @copilotkit/aimock.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { finish, freePort, load, peers, run, test, withFolder } from './harness.mjs';

const KEY = 'sk-test-000000000000';
const everything = [process.execPath, path.join(peers, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')];

// The model's calls, with the expected results.
const CALLS = [
  ['echo', { message: 'Grüße, 世界' }, /^Echo: Grüße, 世界$/],
  ['get-sum', { a: 19, b: 23 }, /42/],
  ['get-tiny-image', {}, /^\[image, image\/png, \d+ kB\]$/m],
  ['get-structured-content', { location: 'Chicago' }, /temperature/],
  ['get-roots-list', {}, /file:\/\/\/.*tandem-peers-/],
  ['get-sum', { a: 'many' }, /[Ii]nvalid/],
  ['no-such-tool', {}, /unknown tool/],
];

const { LLMock } = await load('@copilotkit/aimock');
const model = new LLMock({ port: 0, logLevel: 'warn' });
const answers = (words, calls) => model
  .on({ userMessage: words, hasToolResult: false }, {
    toolCalls: calls.map(([name, given], index) => (
      { id: `call_${index}`, name: `every-thing__${name}`, arguments: JSON.stringify(given) })),
  })
  .on({ userMessage: words, hasToolResult: true }, { content: 'Called.' });
answers('call them', CALLS);
answers('take your time', [['trigger-long-running-operation', { duration: 3, steps: 6 }]]);
answers('look around', [['get-env', {}]]);
// The server's names that the person uses, and what the model has to read.
const NAMED = [
  ['/every-thing:simple-prompt', /This is a simple prompt without arguments\./],
  ['/every-thing:args-prompt Springfield New Jersey', /What's weather in Springfield, New Jersey\?/],
  ['/every-thing:resource-prompt Text 7', /\[demo:\/\/resource\/dynamic\/text\/7\]\nResource 7: /],
  ['see @every-thing:demo://resource/static/document/architecture.md', /# Everything Server/],
  ['see @every-thing:demo://resource/dynamic/text/3', /Resource 3: This is a plaintext resource/],
  ['see @every-thing:nonsense://3', /was not included: MCP server `every-thing` refuses `resources\/read`: .*not found/],
];
for (const [, expected] of NAMED) {
  model.on({ userMessage: expected, hasToolResult: false }, { content: 'Called.' });
}
// The API has no images in results: they come in a message after them.
model.on({ userMessage: 'images of the results above' }, { content: 'Called.' });
await model.start();

// ask FOLDER SERVER WORDS ANSWER: returns the calls' results, with this server configured and its tools allowed.
async function ask(folder, server, words, answer = /^Called\.$/) {
  const names = [...CALLS.map(([name]) => name), 'trigger-long-running-operation', 'get-env'];
  const allow = JSON.stringify([...new Set(names)].map((name) => `every-thing__${name}`));
  await mkdir(path.join(folder, '.home'));
  const config = `[permissions]\nallow = ${allow}\n[limits]\ncommand-timeout = 2\nconnect-timeout = 60\n[mcp.every-thing]\n${server}\n`;
  await writeFile(path.join(folder, '.home/config.toml'), config);
  const settings = { TANDEM_BASE_URL: `${model.url}/v1`, TANDEM_MODEL: 'gpt-4o', TANDEM_API_KEY: KEY };
  const heard = await run(folder, settings, words);
  assert.equal(heard.code, 0, heard.stderr + JSON.stringify(heard.done));
  assert.match(heard.done.final_text, answer);
  return heard.of('tool_execution_end').map(({ result }) => result);
}

async function calls(folder, server) {
  const results = await ask(folder, server, 'call them');
  assert.equal(results.length, CALLS.length);
  CALLS.forEach(([name, , expected], index) => assert.match(results[index].content, expected, name));
}

const stdio = (args) => `command = ${JSON.stringify([...everything, ...args])}`;

await test('server-everything: its tools are called over stdio', () => withFolder((folder) => calls(folder, stdio(['stdio']))));

for (const [words] of NAMED) {
  await test(`server-everything: ${words}`, () => withFolder((folder) => ask(folder, stdio(['stdio']), words)));
}

await test('server-everything: a missing argument is named', () => withFolder(async (folder) => {
  const words = '/every-thing:args-prompt';
  const heard = await ask(folder, stdio(['stdio']), words, /^`\/every-thing:args-prompt` needs `city`\. Usage: .* city \[state\]`$/);
  assert.equal(heard.length, 0);
}));

await test('server-everything: progress prolongs a call', () => withFolder(async (folder) => {
  const [result] = await ask(folder, stdio(['stdio']), 'take your time');
  assert.match(result.content, /completed/);
}));

await test('server-everything: it sees no key', () => withFolder(async (folder) => {
  const [result] = await ask(folder, `${stdio(['stdio'])}\nenv = { OWN = "set" }`, 'look around');
  assert.match(result.content, /"OWN": "set"/);
  assert.ok(!result.content.includes(KEY) && !result.content.includes('TANDEM_'), result.content);
}));

await test('server-everything: its tools are called over streamable HTTP', () => withFolder(async (folder) => {
  const port = await freePort();
  const server = spawn(everything[0], [everything[1], 'streamableHttp'], {
    env: { ...process.env, PORT: port }, stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    await once(server.stderr, 'data'); // "listening"
    await calls(folder, `url = "http://127.0.0.1:${port}/mcp"`);
  } finally {
    server.kill();
  }
}));

await model.stop();
finish();
