/** The script of a sheet, with fake Google objects and real requests. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { inPath } from '../../../test/support/in-path.ts';
import { KEY, type Service, startService } from '../service.ts';

const file = await readFile(join(import.meta.dirname, 'flowhook.gs'), 'utf8');
const options = { skip: inPath('curl') === undefined && 'curl is not installed here' };
let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

test('every menu item has its function, and settings are requested', options, () => {
  const { run, menu } = spreadsheet({}, ['https://flowhook.example.com', 'a key', 'people']);
  run('onOpen');
  for (const name of menu) assert.equal(run(`typeof ${name}`, ''), 'function', name);
  assert.throws(() => run('fillSheet'), /Choose Flowhook > Settings first/);
  run('settings');
});

test('a sheet is filled page by page, and strings stay strings', options, () => {
  const { run, sheets } = spreadsheet({ url: `${service.url}/`, key: KEY, workflow: 'people' });
  run('runAndFill');
  assert.deepEqual(sheets[0]?.rows, [
    ["'id", "'name", "'email"],
    ["'1", "'Ada Lovelace", "'ada@example.com"],
    ["'2", "'Grace Hopper", "'grace@example.com"],
    ["'3", "'=1+1", "'ids@example.com"],
  ]);
  assert.equal(run('asked', ''), 2, 'two pages of two');
});

test('an hourly trigger is made once, and fills the sheet it was made for', options, () => {
  const { run, sheets, triggers } = spreadsheet({ url: service.url, key: KEY, workflow: 'people' });
  run('fillHourly');
  run('fillHourly');
  assert.deepEqual(triggers, ['fillNotedSheet']);
  const [sheet] = sheets;
  assert.ok(sheet);
  const { rows } = sheet;
  sheet.rows = [];
  run('fillNotedSheet');
  assert.deepEqual(sheet.rows, rows);
});

test('a failure says why, and leaves the sheet unchanged', options, () => {
  for (const [workflow, said] of [
    ['broken', /failed: .*the disk is full/s],
    ['un/known', /No workflow found/],
  ] as const) {
    const { run, sheets } = spreadsheet({ url: service.url, key: KEY, workflow });
    assert.throws(() => run('runAndFill'), said);
    assert.deepEqual(sheets[0]?.rows, [['kept']]);
  }
});

/** The objects of Apps Script that the script uses. `UrlFetchApp` runs curl, because it must be synchronous. */
function spreadsheet(properties: Record<string, string>, answers: string[] = []) {
  const menu: string[] = [];
  const triggers: string[] = [];
  const sheets = [{ rows: [['kept']] as unknown[][] }].map((sheet) => ({
    ...sheet,
    getSheetId: () => 17,
    clearContents() {
      this.rows = [];
    },
    getRange(_row: number, _column: number, rows: number, columns: number) {
      return {
        setValues: (values: unknown[][]) => {
          assert.equal(values.length, rows);
          for (const row of values) assert.equal(row.length, columns);
          // Those of the script are arrays of another realm.
          this.rows = JSON.parse(JSON.stringify(values));
        },
      };
    },
    setFrozenRows() {},
  }));
  const store = (values: Record<string, string>) => ({
    getProperty: (name: string) => values[name] ?? null,
    setProperty: (name: string, value: string) => {
      values[name] = value;
    },
  });
  const [user, document] = [store(properties), store({})];
  const building = {
    createMenu: () => building,
    addItem: (_title: string, name: string) => {
      menu.push(name);
      return building;
    },
    addSeparator: () => building,
    addToUi() {},
  };
  const context = createContext({
    SpreadsheetApp: {
      getUi: () => ({
        ...building,
        ButtonSet: { OK_CANCEL: 1 },
        Button: { OK: 1 },
        prompt: () => ({ getSelectedButton: () => 1, getResponseText: () => answers.shift() ?? '' }),
      }),
      getActiveSheet: () => sheets[0],
      getActiveSpreadsheet: () => ({ getSheets: () => sheets }),
    },
    PropertiesService: { getUserProperties: () => user, getDocumentProperties: () => document },
    ScriptApp: {
      getProjectTriggers: () => triggers.map((name) => ({ name, getHandlerFunction: () => name })),
      deleteTrigger: ({ name }: { name: string }) => triggers.splice(triggers.indexOf(name), 1),
      newTrigger: (name: string) => ({
        timeBased: () => ({ everyHours: () => ({ create: () => triggers.push(name) }) }),
      }),
    },
    Utilities: { sleep: () => {} },
    UrlFetchApp: {
      fetch: (url: string, asked: { method: string; headers: Record<string, string> }) => {
        const headers = Object.entries(asked.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
        const args = ['-sS', '-i', '-X', asked.method.toUpperCase(), ...headers, url];
        const [head = '', body = ''] = execFileSync('curl', args, { encoding: 'utf8' }).split('\r\n\r\n');
        const [first = '', ...lines] = head.split('\r\n');
        return {
          getResponseCode: () => Number(first.split(' ')[1]),
          getHeaders: () => Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2))),
          getContentText: () => body,
        };
      },
    },
  });
  // Pages of two records, and a count of the requested pages.
  const small = file.replace('const PAGE = 5000;', 'const PAGE = 2; let asked = 0;');
  assert.notEqual(small, file);
  runInContext(
    small.replace("const response = ask_('get', path);", "asked++; const response = ask_('get', path);"),
    context,
  );
  const run = (code: string, call = '()') => runInContext(code + call, context);
  return { run, menu, sheets, triggers };
}
