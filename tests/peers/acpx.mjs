// A conversation with `tandem acp` by npm acpx, a headless client of the Agent Client Protocol: each prompt is a process of its own, which resumes the session.
// The model is npm @copilotkit/aimock.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { environment, finish, load, peers, tandem, test, withFolder } from './harness.mjs';

const { LLMock } = await load('@copilotkit/aimock');
const model = new LLMock({ port: 0, chunkSize: 4 });
const write = { name: 'write_file', arguments: JSON.stringify({ path: 'new.txt', content: 'new\n' }) };
model
  .on({ userMessage: 'write new.txt', hasToolResult: false }, { content: 'Writing.', toolCalls: [write] })
  .on({ userMessage: 'write new.txt', hasToolResult: true }, { content: 'Written, I hope.' })
  .on({ userMessage: 'what did you write' }, { content: 'new.txt, as you said.' });
await model.start();

// acpx FOLDER ARGUMENTS: the output of one invocation. It keeps its sessions in its home; `--ttl 1` soon ends its background process.
async function acpx(folder, ...words) {
  const home = path.join(folder, '.home');
  await mkdir(home, { recursive: true });
  const settings = { TANDEM_BASE_URL: `${model.url}/v1`, TANDEM_MODEL: 'gpt-4o' };
  const env = { ...environment(home, settings), PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin` };
  const program = path.join(peers, 'node_modules/.bin/acpx');
  const flags = ['--agent', `${tandem} acp`, '--cwd', folder, '--ttl', '1', '--timeout', '60'];
  return new Promise((resolve) => {
    execFile(program, [...flags, ...words], { cwd: folder, env }, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}

for (const [policy, written] of [['--approve-all', true], ['--deny-all', false]]) {
  await test(`acpx: a file is ${written ? '' : 'not '}written with ${policy}`, () => withFolder(async (folder) => {
    const { stdout, stderr } = await acpx(folder, policy, '--format', 'json', 'exec', 'write new.txt');
    const messages = stdout.trim().split('\n').map((line) => JSON.parse(line));
    const result = messages.find((message) => message.result?.stopReason)?.result;
    assert.equal(result?.stopReason, 'end_turn', stdout + stderr);
    const content = await readFile(path.join(folder, 'new.txt'), 'utf8').catch((error) => error.code);
    assert.equal(content, written ? 'new\n' : 'ENOENT');
  }));
}

await test('acpx: a session goes on from call to call', () => withFolder(async (folder) => {
  const made = await acpx(folder, 'sessions', 'new');
  assert.equal(made.code, 0, made.stderr);
  const first = await acpx(folder, '--approve-all', '--format', 'quiet', 'prompt', 'write new.txt');
  assert.match(first.stdout, /Written, I hope\./, first.stderr);
  const second = await acpx(folder, '--format', 'quiet', 'prompt', 'what did you write?');
  assert.match(second.stdout, /new\.txt, as you said\./, second.stderr);
  const { messages } = model.getLastRequest().body;
  const roles = messages.map((message) => message.role);
  assert.deepEqual(roles, ['system', 'user', 'assistant', 'tool', 'assistant', 'user']);
  const closed = await acpx(folder, 'sessions', 'close');
  assert.equal(closed.code, 0, closed.stderr);
}));

await model.stop();
finish();
