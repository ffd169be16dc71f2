// A conversation with `tandem acp` by a third official client: an example of crates.io agent-client-protocol, which allows every call once.
// The model is npm @copilotkit/aimock.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { environment, finish, load, peers, tandem, test, withFolder } from './harness.mjs';

const { LLMock } = await load('@copilotkit/aimock');
const model = new LLMock({ port: 0, logLevel: 'warn' });
const write = { name: 'write_file', arguments: JSON.stringify({ path: 'new.txt', content: 'new\n' }) };
model
  .on({ userMessage: 'write new.txt', hasToolResult: false }, { content: 'Writing.', toolCalls: [write] })
  .on({ userMessage: 'write new.txt', hasToolResult: true }, { content: 'Written, I hope.' });
await model.start();

await test('acp rust sdk: a file is written with permission', () => withFolder(async (folder) => {
  const settings = { TANDEM_BASE_URL: `${model.url}/v1`, TANDEM_MODEL: 'gpt-4o' };
  const options = { cwd: folder, env: environment(path.join(folder, '.home'), settings) };
  const client = path.join(peers, 'rust/bin/yolo_one_shot_client');
  const { stdout, stderr } = await promisify(execFile)(client, ['--command', `${tandem} acp`, 'write new.txt'], options);
  assert.match(stderr, /Agent initialized: Some\(Implementation \{ name: "tandem"/);
  assert.match(stderr, /Auto-approving permission request: .*write_file/);
  assert.match(stderr, /Stop reason: EndTurn/);
  for (const kind of ['AgentMessageChunk', 'ToolCall', 'ToolCallUpdate']) assert.match(stdout, new RegExp(`^${kind}\\(`, 'm'));
  assert.match(stdout, /Written, I hope\./);
  assert.equal(await readFile(path.join(folder, 'new.txt'), 'utf8'), 'new\n');
}));

await model.stop();
finish();
