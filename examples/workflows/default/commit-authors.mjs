/** Prints one JSON object for each author in the history of the git repository that contains this file. */
import { spawn } from 'node:child_process';

// NUL is the only character that neither names nor addresses can contain.
const git = spawn('git', ['log', '-z', '--use-mailmap', '--format=%aE%x00%aN%x00%at'], {
  cwd: import.meta.dirname,
  env: { ...process.env, LC_ALL: 'C' },
  stdio: ['ignore', 'pipe', 'pipe'],
});
git.on('error', (error) => {
  fail(error.code === 'ENOENT' ? 'git is not installed, or not in PATH' : error.message);
});
let complaint = '';
git.stderr.setEncoding('utf8').on('data', (text) => {
  complaint = (complaint + text).slice(0, 2_000);
});
const ended = new Promise((resolve) => git.on('close', resolve));

const authors = new Map();
let rest = '';
for await (const text of git.stdout.setEncoding('utf8')) {
  const fields = (rest + text).split('\0');
  // The last field may be incomplete, and so may its commit.
  const whole = fields.length - 1 - ((fields.length - 1) % 3);
  for (let at = 0; at < whole; at += 3) count(fields[at], fields[at + 1], Number(fields[at + 2]));
  rest = fields.slice(whole).join('\0');
}
if (rest !== '') {
  const [email, name, seconds] = rest.split('\0');
  count(email, name, Number(seconds));
}
if ((await ended) !== 0) {
  if (/not a git repository/.test(complaint))
    fail(`There is no git repository at or above ${import.meta.dirname}`);
  if (/does not have any commits/.test(complaint)) fail('The git repository has no commits yet');
  fail(`git log failed: ${complaint.trim()}`);
}
for (const author of authors.values()) {
  const { firstSeconds, lastSeconds, ...shown } = author;
  console.log(JSON.stringify({ ...shown, firstCommitAt: iso(firstSeconds), lastCommitAt: iso(lastSeconds) }));
}

function count(email, name, seconds) {
  const id = (email || name).toLowerCase();
  // The history starts with the newest commit, so the latest name is kept.
  const author = authors.get(id) ?? {
    id,
    name,
    email,
    commits: 0,
    firstSeconds: seconds,
    lastSeconds: seconds,
  };
  author.commits++;
  author.firstSeconds = Math.min(author.firstSeconds, seconds);
  author.lastSeconds = Math.max(author.lastSeconds, seconds);
  authors.set(id, author);
}

function iso(seconds) {
  return new Date(seconds * 1_000).toISOString();
}

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
