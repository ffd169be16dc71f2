// A conversation with `tandem acp` by the official client: npm @agentclientprotocol/sdk. It checks every message it
// receives against the protocol's schema. The model is npm @copilotkit/aimock.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { converse, prompt, text } from './converse.mjs';
import { finish, load, peers, test, withFolder } from './harness.mjs';

const acp = await load('@agentclientprotocol/sdk');
const { agent } = acp.methods;

const { LLMock } = await load('@copilotkit/aimock');
const model = new LLMock({ port: 0, chunkSize: 4 });
const write = { name: 'write_file', arguments: JSON.stringify({ path: 'new.txt', content: 'new\n' }) };
model
  .on({ userMessage: 'write new.txt', hasToolResult: false }, { content: 'Writing.', toolCalls: [write] })
  .on({ userMessage: 'write new.txt', hasToolResult: true }, { content: 'Written, I hope.' })
  .on({ userMessage: 'continue' }, { content: 'On a copy.' })
  .on({ userMessage: 'add', hasToolResult: false }, { toolCalls: [{ name: 'everything__get-sum', arguments: '{"a":19,"b":23}' }] })
  .on({ userMessage: 'add', hasToolResult: true }, { content: 'Added.' })
  .onMessage('for ever', { content: 'on and on '.repeat(1000) }, { latency: 20 });
await model.start();

const settings = { TANDEM_BASE_URL: `${model.url}/v1`, TANDEM_MODEL: 'gpt-4o' };
const talk = (folder, ...rest) => converse(folder, settings, ...rest);

for (const [answer, written] of [['allow_once', true], ['reject_once', false]]) {
  await test(`acp sdk: a file is ${written ? '' : 'not '}written when the answer is ${answer}`, () => withFolder((folder) =>
    talk(folder, answer, async (agentSide, sessionId, heard) => {
      const { stopReason } = await agentSide.request(agent.session.prompt, prompt(sessionId, 'write new.txt'));
      assert.equal(stopReason, 'end_turn');
      assert.equal(text(heard), 'Writing.Written, I hope.');
      const [question, ...others] = heard.questions;
      assert.equal(others.length, 0);
      const [diff] = question.toolCall.content;
      assert.deepEqual([diff.type, diff.path, diff.newText], ['diff', path.join(folder, 'new.txt'), 'new\n']);
      const last = heard.updates.filter((update) => update.toolCallId && update.status).at(-1);
      assert.equal(last.status, written ? 'completed' : 'failed');
      const content = await readFile(path.join(folder, 'new.txt'), 'utf8').catch((error) => error.code);
      assert.equal(content, written ? 'new\n' : 'ENOENT');
    })));
}

await test('acp sdk: what is new in the protocol', () => withFolder((folder) => {
  const offers = { auth: { terminal: true }, session: { notices: {}, compaction: {}, configOptions: { boolean: {} } } };
  return talk(folder, 'allow_once', async (agentSide, sessionId, heard) => {
    const [first, terminal] = heard.hello.authMethods;
    assert.deepEqual([terminal.type, terminal.args], ['terminal', ['--login']]);
    await agentSide.request(agent.authenticate, { methodId: first.id });
    const on = { sessionId, configId: 'copy', type: 'boolean', value: true };
    const { configOptions } = await agentSide.request(agent.session.setConfigOption, on);
    assert.equal(configOptions.find(({ id }) => id === 'copy').currentValue, true);
    await agentSide.request(agent.session.setConfigOption, { ...on, value: false });
    await agentSide.request(agent.session.prompt, prompt(sessionId, 'write new.txt'));
    assert.equal(heard.updates.find(({ sessionUpdate }) => sessionUpdate === 'tool_call').name, 'write_file');
    const place = { sessionId, cwd: folder, mcpServers: [] };
    await agentSide.request(agent.session.resume, place);
    const { sessionId: copy } = await agentSide.request('session/fork', place);
    const { stopReason } = await agentSide.request(agent.session.prompt, prompt(copy, 'continue'));
    assert.equal(stopReason, 'end_turn');
    assert.match(text(heard), /On a copy\.$/);
    await agentSide.request(agent.session.prompt, prompt(copy, '/compact'));
    const { sessionId: other } = await agentSide.request(agent.session.new, { cwd: folder, additionalDirectories: ['/tmp'], mcpServers: [] });
    assert.notEqual(other, copy);
    await assert.rejects(agentSide.request(agent.logout, {}), /has not stored the key/);
  }, [], offers);
}));

await test('acp sdk: a prompt is cancelled', () => withFolder((folder) =>
  talk(folder, 'reject_once', async (agentSide, sessionId, heard) => {
    const answer = agentSide.request(agent.session.prompt, prompt(sessionId, 'talk for ever'));
    await heard.first.promise;
    await agentSide.notify(agent.session.cancel, { sessionId });
    assert.equal((await answer).stopReason, 'cancelled');
  })));

await test('acp sdk: an MCP server of the client adds up', () => withFolder((folder) => {
  const index = path.join(peers, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  const everything = { name: 'everything', command: process.execPath, args: [index, 'stdio'], env: [] };
  return talk(folder, 'allow_once', async (agentSide, sessionId, heard) => {
    const { stopReason } = await agentSide.request(agent.session.prompt, prompt(sessionId, 'add 19 and 23'));
    assert.equal(stopReason, 'end_turn');
    assert.equal(heard.questions[0].toolCall.title, 'everything: get-sum {"a":19,"b":23}');
    const last = heard.updates.filter((update) => update.toolCallId && update.status).at(-1);
    assert.equal(last.status, 'completed');
    assert.match(last.content[0].content.text, /42/);
  }, [everything]);
}));

await model.stop();
finish();
