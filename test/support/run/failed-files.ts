/** A reporter for `node --test` that lists the files with failed tests, so that they can be run again. */
import { relative } from 'node:path';

interface TestEvent {
  type: string;
  /** `entryFile` is the file that was run. `file` may be a module that makes cases for several files. */
  data: { file?: string; entryFile?: string };
}

export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const listed = new Set<string>();
  for await (const { type, data } of events) {
    const file = data.entryFile ?? data.file;
    if (type !== 'test:fail' || file === undefined || listed.has(file)) continue;
    listed.add(file);
    yield `${relative(process.cwd(), file)}\n`;
  }
}
