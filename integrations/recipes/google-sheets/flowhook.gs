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

/** Stored for you alone: other editors of the spreadsheet do not see the key. */
function settings() {
  const ui = SpreadsheetApp.getUi();
  for (const [name, question] of [
    ['url', 'The URL of Flowhook (https://flowhook.example.com)'],
    ['key', 'An API key with the scopes read and queue'],
    ['workflow', 'The id of the workflow'],
  ]) {
    const answer = ui.prompt('Flowhook', question, ui.ButtonSet.OK_CANCEL);
    if (answer.getSelectedButton() !== ui.Button.OK) return;
    PropertiesService.getUserProperties().setProperty(name, answer.getResponseText().trim());
  }
}

/** Fills the open sheet, and stores its id for the hourly run, which has no open sheet. */
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

/** Reads everything before it writes, so that an interrupted run leaves the sheet unchanged. */
function fill_(sheet) {
  const records = read_();
  const columns = ['id', ...new Set(records.flatMap(Object.keys).filter((name) => name !== 'id'))];
  const rows = [columns, ...records.map((record) => columns.map((name) => record[name]))];
  sheet.clearContents();
  sheet.getRange(1, 1, rows.length, columns.length).setValues(rows.map((row) => row.map(cell_)));
  sheet.setFrozenRows(1);
}

/** Reads all pages by their `link` headers. All pages are of one version, even if another one is published meanwhile. */
function read_() {
  const records = [];
  let path = `${workflowPath_()}/data?limit=${PAGE}`;
  while (path) {
    const response = ask_('get', path);
    if (response.status !== 200) throw new Error(response.body.error);
    for (const record of response.body) records.push(record);
    path = /<([^>]+)>; *rel="next"/.exec(response.headers.link || '')?.[1];
  }
  return records;
}

function run_() {
  // If there is already an unfinished job, this waits for that one.
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
    // The key must not be sent to another address.
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

/** Keeps strings as strings: without the apostrophe a string starting with = would be a formula, and 007 the number 7. */
function cell_(value) {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value === '' ? '' : `'${value}`;
  return typeof value === 'object' ? `'${JSON.stringify(value)}` : value;
}
