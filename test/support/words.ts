/**
 * Words and turns that the repository's prose does not use, each with what to write instead. Reviewers stumbled over
 * them: literal translations, riddles, and British spellings. The rules behind the list are in CONTRIBUTING.md, "Plain
 * English".
 */
import { execFileSync } from 'node:child_process';
import { extname } from 'node:path';

/** One use of a word on the list. `path` is relative to the root of the repository. */
export interface Misuse {
  path: string;
  line: number;
  found: string;
  instead: string;
}

/** Regular expressions of whole words, in lower case, with what to write instead. */
const INSTEAD: readonly (readonly [found: string, instead: string])[] = [
  // Verbs that a service does not do
  ['answers?|answered|answering|answerable', 'returns, responds; response'],
  ['stands?|stood|standing', 'is, appears, is listed'],
  ['tells?(?! me\\b)|telling|told', 'reports, shows, says; is set to, is passed'],
  ['unless (?:said|given) otherwise', 'by default'],
  ['goes on|go on|went on|going on', 'continues'],
  ['goes by|go by|went by', 'depends on, passes'],
  ['lies|lay|lain', 'is'],
  ['rests? on|rested on|rests? with', 'depends on'],
  ['comes? of|came of', 'results from'],
  ['came to|come to|comes to(?! (?:light|life|rest))', 'is, totals, ended as'],
  ['(?:takes?|took|signs?|goes|go) along', 'includes, also signs'],
  ['gives? back|gave back|given back', 'returns, releases'],
  ['puts? back|putting back', 'restores'],
  ['(?:lets?|letting) go', 'releases'],
  ['broken off|breaks? off|broke off|breaking off', 'aborted, interrupted, disconnected'],
  ['looks? through|looked through', 'searches'],
  ['hears? of|heard of', 'is notified of, receives'],
  ['begun', 'started'],
  ['mends?|mended|mending', 'fixes'],
  ['to be had|is had|are had', 'is available'],
  ['(?:holds?|held) good', 'is valid'],
  ['is to be|are to be|was to be|were to be', 'must be, should be, will be'],
  ['has to be|have to be|had to be', 'must be'],
  // Riddles
  ['of which', 'whose; or repeat the noun'],
  ['by whom|for whom|to whom|of whom', 'who; or name the person or program'],
  ['whoever|whosoever', 'anyone who; or name the caller'],
  ['whatever', 'any; or name it'],
  ['what is due|what (?:is|was|has) (?:to come|gone)', 'due jobs, due attempts; name the thing'],
  ['of (?:now|then)', 'current, previous'],
  ['of (?:itself|himself|themselves)', 'its own; or "by itself"'],
  ['that which|those which', 'what; the ones that'],
  ['with commas between', 'comma-separated'],
  ['as late', 'with the same delay'],
  ['in vain', 'without success'],
  ['in line', 'queued, waiting'],
  ['nothing but|naught|aught', 'only'],
  ['the like|and such', 'name them, or "similar"'],
  ['for ?ever|for good', 'permanently'],
  ['at once', 'immediately; at the same time'],
  ['anew|afresh', 'again'],
  ['likewise', 'also, in the same way'],
  [
    'hence|thence|whence|thereby|hereby|therein|thereof|thereupon|hitherto|henceforth|lest|ere',
    'so, from there, by that',
  ],
  ['from (?:then|now|there|here|\\d+|one|version \\d+) on', 'after that; or later, or more'],
  ['some (?:\\d\\S*|ten|twenty|thirty|fifty|hundred|thousand)', 'about'],
  ['one after the other', 'one at a time, in order'],
  // American spelling
  ['(?:mis)?behaviou?rs?(?<=our|ours)|(?:dis)?colou?r(?:s|ed|ing|less)?(?<=olour.*)', 'behavior, color'],
  ['(?:fav|hon|neighb|rum|flav|lab|endeav)our(?:s|ed|ing|able|ite)?', 'favor, honor, neighbor'],
  ['licences?|defences?|offences?|pretences?', 'license, defense'],
  [
    '(?:cancel|label|travel|model|signal|channel|level|tunnel|marshal)l(?:ed|ing|er)',
    'canceled, labeled, modeled',
  ],
  [
    'catalogues?|analogues?|dialogues?|programmes?|artefacts?|judgements?',
    'catalog, dialog, artifact, judgment',
  ],
  ['grey(?:s|ed)?|centre[sd]?|(?:milli|kilo)?metres?|theatres?|fibres?', 'gray, center, meter'],
  ['misspelt|spelt|learnt|burnt|whilst|amongst|unlearnt', 'misspelled, learned, while, among'],
  [
    '\\w*(?:organ|recogn|initial|serial|normal|author|summar|optim|minim|maxim|synchron|final|custom|standard|token|util|categor|parallel|sanit|random|visual|emphas|capital|real|apolog|general|special)is(?:e|es|ed|er|ing|ation)',
    '-ize',
  ],
  ['analys(?:e|ed|ing)', 'analyze'],
];

const PATTERNS = INSTEAD.map(([found, instead]) => ({
  found: new RegExp(`\\b(?:${found})\\b`, 'gi'),
  instead,
}));

/** Every use of a word on the list in the prose of one file: `text` is its content, `path` says its language. */
export function misusesIn(path: string, text: string): Misuse[] {
  const prose = LANGUAGES[extname(path)]?.(text) ?? '';
  return PATTERNS.flatMap(({ found, instead }) =>
    [...prose.matchAll(found)].map((match) => ({ found: match[0], at: match.index, instead })),
  )
    .sort((a, b) => a.at - b.at)
    .map(({ found, at, instead }) => ({ path, line: prose.slice(0, at).split('\n').length, found, instead }));
}

/** Files of the repository that hold prose; generated files are covered by what they are generated from. */
export function filesWithProse(root: string): string[] {
  const ignored =
    /^(?:LICENSE|test\/fixtures|test\/support\/words\.ts|test\/docs\/words\.test\.ts|.*package-lock\.json$)/;
  return execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => path !== '' && extname(path) in LANGUAGES && !ignored.test(path));
}

/** By the ending of a file's name: blanks everything that nobody reads as prose. Lines keep their numbers. */
const LANGUAGES: Readonly<Record<string, (text: string) => string>> = {
  '.ts': script,
  '.mts': script,
  '.js': script,
  '.mjs': script,
  '.tsx': (text) => merged(script(text), only(text, /(?<=[>}])[^<>{}=;]*[a-z][^<>{}=;]*(?=[<{])/g)),
  '.md': (text) => without(text, /^(`{3,})[\s\S]*?^\1|`[^`\n]+`|\]\([^)]*\)|<!--[\s\S]*?-->/gm),
  '.yaml': hashes,
  '.yml': hashes,
  '.sh': hashes,
  '.py': hashes,
  '.rb': hashes,
  '.service': hashes,
  '.example': hashes,
  // `Dockerfile`, `.ci/run`, `.npmrc`
  '': hashes,
  '.go': script,
  '.php': script,
  '.java': script,
  '.gs': script,
  '.json': (text) => only(text, /"(?:description|summary|title|detail|message)": "(?:\\.|[^"\\])*"/g),
};

/** Comments of languages that begin them with a hash. */
function hashes(text: string): string {
  return only(text, /#.*/g);
}

/** Comments, and strings of more than one word. Words in backticks are code. */
function script(text: string): string {
  const token =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^`\\])*`/g;
  return only(text, token, (found) => {
    const isComment = found.startsWith('/');
    if (!isComment && !/[a-z,.:;] [a-z]/i.test(found)) return blank(found);
    return without(
      found,
      isComment ? /`[^`\n]+`/g : /\$\{(?:[^{}]|\{[^{}]*\})*\}|\\`[^`\n]+`|(?<!^)`[^`\n]+`(?!$)/g,
    );
  });
}

function only(text: string, kept: RegExp, shown: (found: string) => string = (found) => found): string {
  let at = 0;
  let prose = '';
  for (const match of text.matchAll(kept)) {
    prose += blank(text.slice(at, match.index)) + shown(match[0]);
    at = match.index + match[0].length;
  }
  return prose + blank(text.slice(at));
}

function without(text: string, dropped: RegExp): string {
  return text.replace(dropped, blank);
}

/** Both texts have the same length: where one is blank, the other shows. */
function merged(a: string, b: string): string {
  return [...a].map((letter, at) => (letter.trim() === '' ? (b[at] ?? letter) : letter)).join('');
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}
