/** Workflows whose command prints many records. */

/**
 * A program that prints a number of records in large parts, the same ones in every run.
 *
 * @param line JavaScript for the text of record `i`, with its line end
 */
export const printing = (count: number, line: string) => `
let text = '';
for (let i = 0; i < ${count}; i++) {
  text += ${line};
  if (text.length > 65536) {
    if (!process.stdout.write(text)) await new Promise((drained) => process.stdout.once('drain', drained));
    text = '';
  }
}
process.stdout.write(text);
`;

/** A workflow that emits a number of people, about 90 bytes each. */
export const people = {
  definition: 'source: { type: command, command: [node, people.mjs] }\nlimits: { timeout: 30m }\n',
  program: (count: number) =>
    printing(
      count,
      `'{"id":"' + i + '","name":"Person Number ' + i + '","email":"person' + i + '@example.com","city":"City ' + (i % 100) + '"}\\n'`,
    ),
};
