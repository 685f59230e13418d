/**
 * Google Sheets: fills a sheet with the records of a Flowhook workflow. Paste it into Extensions > Apps Script, reload
 * the spreadsheet, and choose Flowhook > Settings.
 */
const PAGE = 5000;
const WAIT_MS = 4 * 60 * 1000; // Apps Script ends a run after six minutes.

function onOpen() {
  SpreadsheetApp.getUi()
    .createMenu('Flowhook')
    .addItem('Fill this sheet', 'fillSheet')
    .addItem('Run the workflow, then fill', 'runAndFill')
    .addItem('Fill it every hour', 'fillHourly')
    .addSeparator()
    .addItem('Settings', 'settings')
    .addToUi();
}

/** Kept for you alone: others who may edit the spreadsheet do not see the key. */
function settings() {
  const ui = SpreadsheetApp.getUi();
  for (const [name, question] of [
    ['url', 'Where is Flowhook? (https://flowhook.example.com)'],
    ['key', 'An API key with the scopes read and queue'],
    ['workflow', 'The id of the workflow'],
  ]) {
    const answer = ui.prompt('Flowhook', question, ui.ButtonSet.OK_CANCEL);
    if (answer.getSelectedButton() !== ui.Button.OK) return;
    PropertiesService.getUserProperties().setProperty(name, answer.getResponseText().trim());
  }
}

/** Fills the sheet that is open, and notes it for the hourly run, which has none open. */
function fillSheet() {
  const sheet = SpreadsheetApp.getActiveSheet();
  PropertiesService.getDocumentProperties().setProperty('sheet', String(sheet.getSheetId()));
  fill_(sheet);
}

function runAndFill() {
  run_();
  fillSheet();
}

function fillHourly() {
  fillSheet();
  for (const trigger of ScriptApp.getProjectTriggers()) {
    if (trigger.getHandlerFunction() === 'fillNotedSheet') ScriptApp.deleteTrigger(trigger);
  }
  ScriptApp.newTrigger('fillNotedSheet').timeBased().everyHours(1).create();
}

function fillNotedSheet() {
  const id = PropertiesService.getDocumentProperties().getProperty('sheet');
  const sheet = SpreadsheetApp.getActiveSpreadsheet()
    .getSheets()
    .find((one) => String(one.getSheetId()) === id);
  if (sheet) fill_(sheet);
}

/** Everything is read before anything is written: what breaks off leaves the sheet as it was. */
function fill_(sheet) {
  const records = read_();
  const columns = ['id', ...new Set(records.flatMap(Object.keys).filter((name) => name !== 'id'))];
  const rows = [columns, ...records.map((record) => columns.map((name) => record[name]))];
  sheet.clearContents();
  sheet.getRange(1, 1, rows.length, columns.length).setValues(rows.map((row) => row.map(cell_)));
  sheet.setFrozenRows(1);
}

/** Pages follow the `link` header; all of them are of one version, even when another one is published meanwhile. */
function read_() {
  const records = [];
  let path = `${workflowPath_()}/data?limit=${PAGE}`;
  while (path) {
    const answer = ask_('get', path);
    if (answer.status !== 200) throw new Error(answer.body.error);
    for (const record of answer.body) records.push(record);
    path = /<([^>]+)>; *rel="next"/.exec(answer.headers.link || '')?.[1];
  }
  return records;
}

function run_() {
  // A job that is there already is waited for.
  const queued = ask_('post', `${workflowPath_()}/queue`);
  const id = queued.headers['x-job-id'];
  if (!id) throw new Error(queued.body.error);
  for (const until = Date.now() + WAIT_MS; Date.now() < until; Utilities.sleep(2000)) {
    const job = ask_('get', `/v1/jobs/${id}`).body;
    if (job.state === 'finished') return;
    if (job.state === 'failed' || job.state === 'canceled') throw new Error(`${job.state}: ${job.error || job.reason}`);
  }
  throw new Error('The job has not ended yet. Fill the sheet later.');
}

function ask_(method, path) {
  const response = UrlFetchApp.fetch(property_('url').replace(/\/+$/, '') + path, {
    method,
    headers: { 'x-api-key': property_('key') },
    muteHttpExceptions: true,
    // A key goes to no other address.
    followRedirects: false,
  });
  const headers = {};
  for (const [name, value] of Object.entries(response.getHeaders())) headers[name.toLowerCase()] = value;
  return { status: response.getResponseCode(), headers, body: JSON.parse(response.getContentText()) };
}

function workflowPath_() {
  return `/v1/workflows/${encodeURIComponent(property_('workflow'))}`;
}

function property_(name) {
  const value = PropertiesService.getUserProperties().getProperty(name);
  if (!value) throw new Error('Choose Flowhook > Settings first.');
  return value;
}

/** A text stays a text: without the apostrophe one that begins with = would be a formula, and 007 the number 7. */
function cell_(value) {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value === '' ? '' : `'${value}`;
  return typeof value === 'object' ? `'${JSON.stringify(value)}` : value;
}
