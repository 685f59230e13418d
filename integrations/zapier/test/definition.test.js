/** The definition of the app, as Zapier validates it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateAppDefinition } from 'zapier-platform-schema';
import { App, handler } from './support/run.js';

test('the definition matches the schema of the platform, and the check detects missing parts', async () => {
  assert.deepEqual((await handler({ command: 'validate' })).results, []);
  // Like `zapier validate`: functions are replaced with marks, because the schema is for JSON.
  const { results: definition } = await handler({ command: 'definition' });
  assert.deepEqual(
    validateAppDefinition(definition).errors.map((error) => error.stack),
    [],
  );
  const { performSubscribe: _, ...rest } = definition.triggers.workflow_finished.operation;
  definition.triggers.workflow_finished.operation = { ...rest, type: 'hooks' };
  assert.notEqual(validateAppDefinition(definition).errors.length, 0);
});

test('everything that users can choose has a label, a sentence as description, and a sample', () => {
  for (const item of [App.triggers, App.searches, App.creates].flatMap((items) => Object.values(items))) {
    const { label, description } = item.display;
    assert.match(label, /^[A-Z]/, item.key);
    assert.match(description, /^[A-Z].*\.$/, item.key);
    assert.ok(item.operation.sample.id, item.key);
  }
  for (const trigger of Object.values(App.triggers).filter((one) => one.operation.type === 'hook')) {
    assert.match(trigger.display.description, /^Triggers when /, trigger.key);
  }
});

test('every list or search that a field names exists', () => {
  for (const item of [App.triggers, App.searches, App.creates].flatMap((items) => Object.values(items))) {
    for (const field of item.operation.inputFields ?? []) {
      const [list, search] = [field.dynamic, field.search].map((name) => name?.split('.')[0]);
      if (list !== undefined) assert.ok(list in App.triggers, `${item.key}: ${list}`);
      if (search !== undefined) assert.ok(search in App.searches, `${item.key}: ${search}`);
    }
  }
});
