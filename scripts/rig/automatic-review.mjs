// Codex with automatic review: what is asked for outside of the sandbox is judged by a model of its own, and runs without
// a profile if that says so. Nobody is asked.
const verdict = JSON.stringify({ risk_level: 'low', user_authorization: 'high', outcome: 'allow', rationale: 'the rig says so' });

/** Has the mock model answer as the reviewer, beside the scripts; returns a count of reviews. */
function reviewer(model) {
  const reviews = { count: 0 };
  const get = model.scripts.get.bind(model.scripts);
  model.scripts.get = (id) => {
    const { instructions, input } = model.requests.at(-1).body;
    if (!/judging one planned coding-agent action/.test(JSON.stringify([instructions, input]))) return get(id);
    reviews.count++;
    const content = [{ type: 'output_text', text: verdict, annotations: [] }];
    return { handle: async () => [{ type: 'message', role: 'assistant', id: `review_${reviews.count}`, content }] };
  };
  return reviews;
}

export default [
  {
    name: 'automatic-review',
    async run(t) {
      await t.direct.mkdir(t.path('ws'));
      const reviews = reviewer(t.model);
      const app = await t.app({
        sandbox: 'workspace-write', approval: 'on-request', top: 'approvals_reviewer = "auto_review"\n',
        extra: '[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n',
      });
      const asked = [];
      app.onApproval = (msg) => { asked.push(msg.method); return { decision: 'decline' }; };
      const thread = await t.thread(app, { cwd: t.path('ws') });
      await t.turn(app, thread, async (m) => {
        t.assert.equal((await m.exec('echo yes > inside.txt')).code, 0);
        t.assert.notEqual((await m.exec('echo no > ../outside.txt')).code, 0);
        t.assert.equal(reviews.count, 0);
        const r = await m.exec('echo reviewed > ../outside.txt', { sandbox_permissions: 'require_escalated', justification: 'May the rig write?' });
        t.assert.equal(r.code, 0, r.text);
      });
      t.assert.equal(reviews.count, 1);
      t.assert.deepEqual(asked, []);
      t.assert.equal((await t.direct.readFile(t.path('outside.txt'))).toString(), 'reviewed\n');
    },
  },
];
