/** A workflow that emits a number of people, about 90 bytes each. */

export const people = {
  definition: 'source: { type: command, command: [node, people.mjs] }\nlimits: { timeout: 30m }\n',
  /** Every run emits the same records, so that a second run changes nothing. */
  program: (count: number) => `
let text = '';
for (let i = 0; i < ${count}; i++) {
  text += '{"id":"' + i + '","name":"Person Number ' + i + '","email":"person' + i + '@example.com","city":"City ' + (i % 100) + '"}\\n';
  if (text.length > 65536) {
    if (!process.stdout.write(text)) await new Promise((drained) => process.stdout.once('drain', drained));
    text = '';
  }
}
process.stdout.write(text);
`,
};
