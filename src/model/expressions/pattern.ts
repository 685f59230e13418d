/**
 * Regular expressions whose time grows linearly with the text, in the syntax of RE2, which the Common Expression
 * Language prescribes: groups, alternatives, classes, quantifiers, anchors, and the flags i, m and s. JavaScript's own
 * would need centuries for `(a+)+b`, and has no limit.
 *
 * A pattern becomes a list of instructions. All positions that the pattern may have reached advance together, one
 * character at a time, so no character is read twice. A set of positions is a state, and what follows from a state and a
 * character is remembered.
 */
import { EvaluationMistake } from './mistakes.ts';
import type { Steps } from './steps.ts';
import { described } from './values.ts';

/** Maximum number of characters of a pattern. */
const MAX_PATTERN = 1_000;
/** Maximum number of instructions. `{n}` repeats those of its part. */
const MAX_INSTRUCTIONS = 2_000;
/** Maximum depth of groups. */
const MAX_DEPTH = 50;
/** Maximum number of patterns that are kept, because compiling one costs more than matching a title. */
const MAX_KEPT = 50;
/** Maximum number of states that a pattern keeps, at about 1 KB. */
const MAX_STATES = 200;

type Instruction =
  | { kind: 'one'; isOne: (code: number) => boolean }
  | { kind: 'either'; first: number; second: number }
  | { kind: 'go'; to: number }
  | { kind: 'at'; assertion: Assertion }
  | { kind: 'end' };

type Assertion = 'start' | 'end' | 'line start' | 'line end' | 'boundary' | 'no boundary';

const kept = new Map<string, Pattern>();

/** What the character before a position is, for `^` and `\b`. */
type Before = 'start' | 'newline' | 'word' | 'other';

/** What a match may have reached between two characters, and what follows from the next one. */
interface State {
  /** Indexes of instructions, without those that follow from them. */
  reached: readonly number[];
  before: Before;
  /** States after the characters of ASCII that were read here; true if the pattern has then matched. */
  next: (State | true | undefined)[];
}

/** The code of the end of the text, which no character has. */
const END = -1;

export class Pattern {
  readonly #instructions: readonly Instruction[];
  #states = new Map<string, State>();

  /** @throws EvaluationMistake if the pattern is invalid */
  static of(source: string): Pattern {
    const known = kept.get(source);
    if (known !== undefined) return known;
    const pattern = new Pattern(source);
    if (kept.size >= MAX_KEPT) kept.clear();
    kept.set(source, pattern);
    return pattern;
  }

  private constructor(source: string) {
    if (source.length > MAX_PATTERN) {
      throw new EvaluationMistake(`A regular expression has at most ${MAX_PATTERN} characters`);
    }
    this.#instructions = new Compiler(source).compiled();
  }

  /** Whether a part of the text matches. @throws StepsMistake */
  matches(text: string, steps: Steps): boolean {
    // What the states remember must not decide whether an evaluation has steps left.
    steps.take((text.length * this.#instructions.length) / 16);
    let state = this.#state([0], 'start');
    for (let at = 0; at < text.length; at += 1) {
      let code = text.charCodeAt(at);
      if (code >= 0xd800 && code < 0xdc00) {
        code = text.codePointAt(at) as number;
        if (code > 0xffff) at += 1;
      }
      const known = code < 128 ? state.next[code] : undefined;
      const next = known ?? this.#after(state, code);
      if (next === true) return true;
      if (code < 128) state.next[code] = next;
      state = next;
    }
    return this.#after(state, END) === true;
  }

  /** Reads one character. Returns true if the pattern has matched before it. */
  #after(state: State, code: number): State | true {
    const seen = new Set<number>();
    const waiting = [...state.reached];
    const after = new Set([0]);
    for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
      if (seen.has(index)) continue;
      seen.add(index);
      const instruction = this.#instructions[index] as Instruction;
      if (instruction.kind === 'end') return true;
      if (instruction.kind === 'go') waiting.push(instruction.to);
      else if (instruction.kind === 'either') waiting.push(instruction.second, instruction.first);
      else if (instruction.kind === 'at') {
        if (holds(instruction.assertion, state.before, code)) waiting.push(index + 1);
      } else if (code !== END && instruction.isOne(code)) after.add(index + 1);
    }
    return this.#state([...after], code === NEWLINE ? 'newline' : isWord(code) ? 'word' : 'other');
  }

  #state(reached: number[], before: Before): State {
    const key = `${before} ${reached.sort((a, b) => a - b).join()}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= MAX_STATES) this.#states = new Map();
    const state: State = { reached, before, next: [] };
    this.#states.set(key, state);
    return state;
  }
}

const NEWLINE = 10;

function holds(assertion: Assertion, before: Before, code: number): boolean {
  switch (assertion) {
    case 'start':
      return before === 'start';
    case 'end':
      return code === END;
    case 'line start':
      return before === 'start' || before === 'newline';
    case 'line end':
      return code === END || code === NEWLINE;
    case 'boundary':
      return (before === 'word') !== isWord(code);
    case 'no boundary':
      return (before === 'word') === isWord(code);
  }
}

function isWord(code: number): boolean {
  return code !== END && /^\w$/.test(String.fromCodePoint(code));
}

interface Flags {
  i: boolean;
  m: boolean;
  s: boolean;
}

/** Reads a pattern and appends its instructions. */
class Compiler {
  readonly #source: string;
  readonly #instructions: Instruction[] = [];
  #at = 0;
  #depth = 0;
  #flags: Flags = { i: false, m: false, s: false };

  constructor(source: string) {
    this.#source = source;
  }

  compiled(): Instruction[] {
    this.#alternatives();
    if (this.#at < this.#source.length) throw this.#mistake('has an unmatched )');
    this.#add({ kind: 'end' });
    return this.#instructions;
  }

  /** `a|b|c`, up to the end or a `)`. */
  #alternatives(): void {
    const start = this.#instructions.length;
    const flags = this.#flags;
    const ends: number[] = [];
    this.#sequence();
    while (this.#takes('|')) {
      // The new branch starts after a jump that ends the branches before it.
      this.#insert(start, { kind: 'either', first: start + 1, second: this.#instructions.length + 2 });
      for (let index = 0; index < ends.length; index += 1) ends[index] = (ends[index] as number) + 1;
      ends.push(this.#add({ kind: 'go', to: -1 }));
      this.#sequence();
    }
    for (const end of ends) this.#instructions[end] = { kind: 'go', to: this.#instructions.length };
    this.#flags = flags;
  }

  #sequence(): void {
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] as string)) {
      const start = this.#instructions.length;
      const isRepeatable = this.#atom();
      this.#quantifiers(start, isRepeatable);
    }
  }

  /** Returns whether a quantifier may follow. */
  #atom(): boolean {
    const character = this.#source[this.#at] as string;
    if (this.#takes('(')) return this.#group();
    if (this.#takes('^')) return this.#assert(this.#flags.m ? 'line start' : 'start');
    if (this.#takes('$')) return this.#assert(this.#flags.m ? 'line end' : 'end');
    if ('*+?'.includes(character)) throw this.#mistake(`has nothing to repeat before ${character}`);
    if (character === '[') return this.#one(this.#class());
    if (character === '\\') return this.#escape();
    if (this.#takes('.')) return this.#one(this.#flags.s ? '[^]' : '[^\\n]');
    const literal = String.fromCodePoint(this.#source.codePointAt(this.#at) as number);
    this.#at += literal.length;
    return this.#literal(literal);
  }

  #group(): boolean {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#mistake(`has groups more than ${MAX_DEPTH} levels deep`);
    const outer = this.#flags;
    if (this.#takes('?')) {
      const rest = this.#source.slice(this.#at);
      const named = /^P?<[A-Za-z_]\w*>/.exec(rest)?.[0];
      const flags = /^([ims]*)(?:-([ims]+))?([:)])/.exec(rest);
      if (named !== undefined) this.#at += named.length;
      else if (flags !== null) {
        this.#at += flags[0].length;
        this.#flags = { ...outer };
        for (const flag of flags[1] ?? '') this.#flags[flag as keyof Flags] = true;
        for (const flag of flags[2] ?? '') this.#flags[flag as keyof Flags] = false;
        // Flags without a part apply to the rest of the group around them.
        if (flags[3] === ')') {
          this.#depth -= 1;
          return false;
        }
      } else throw this.#mistake('looks ahead or behind, which is not supported');
    }
    this.#alternatives();
    if (!this.#takes(')')) throw this.#mistake('has an unmatched (');
    this.#flags = outer;
    this.#depth -= 1;
    return true;
  }

  #quantifiers(start: number, isRepeatable: boolean): void {
    const braces = /^\{(\d{1,4})(?:(,)(\d{1,4})?)?\}/.exec(this.#source.slice(this.#at, this.#at + 12));
    const [least, most] = this.#takes('*')
      ? [0, undefined]
      : this.#takes('+')
        ? [1, undefined]
        : this.#takes('?')
          ? [0, 1]
          : [undefined, undefined];
    if (least !== undefined) this.#repeat(start, least, most);
    else if (braces !== null) {
      this.#at += braces[0].length;
      const [, from, comma, to] = braces;
      const upTo = comma === undefined ? Number(from) : to === undefined ? undefined : Number(to);
      if (upTo !== undefined && upTo < Number(from)) throw this.#mistake(`has ${braces[0]} out of order`);
      this.#repeat(start, Number(from), upTo);
    } else return;
    if (!isRepeatable) throw this.#mistake('repeats an anchor or a flag');
    // Whether a quantifier takes much or little makes no difference to whether there is a match.
    this.#takes('?');
    if (/^[*+?]/.test(this.#source.slice(this.#at))) throw this.#mistake('has two quantifiers in a row');
  }

  /** Replaces the instructions from `start` by as many repetitions. */
  #repeat(start: number, least: number, most: number | undefined): void {
    const part = this.#instructions.splice(start);
    for (let time = 0; time < least; time += 1) this.#copy(part, start);
    if (most === undefined) {
      const loop = this.#add({ kind: 'either', first: -1, second: -1 });
      this.#copy(part, start);
      this.#add({ kind: 'go', to: loop });
      this.#instructions[loop] = { kind: 'either', first: loop + 1, second: this.#instructions.length };
      return;
    }
    const skips: number[] = [];
    for (let time = least; time < most; time += 1) {
      skips.push(this.#add({ kind: 'either', first: -1, second: -1 }));
      this.#copy(part, start);
    }
    for (const skip of skips) {
      this.#instructions[skip] = { kind: 'either', first: skip + 1, second: this.#instructions.length };
    }
  }

  /** Appends instructions that were at `from`. */
  #copy(part: readonly Instruction[], from: number): void {
    const by = this.#instructions.length - from;
    for (const instruction of part) this.#add(moved(instruction, by, 0));
  }

  /** Inserts an instruction, and moves the targets of those after it. */
  #insert(at: number, instruction: Instruction): void {
    const after = this.#instructions.splice(at);
    this.#add(instruction);
    for (const one of after) this.#add(moved(one, 1, at));
  }

  #escape(): boolean {
    const rest = this.#source.slice(this.#at + 1, this.#at + 14);
    const assertion = ({ A: 'start', z: 'end', b: 'boundary', B: 'no boundary' } as const)[rest[0] ?? ''];
    if (assertion !== undefined) {
      this.#at += 2;
      return this.#assert(assertion);
    }
    return this.#one(this.#escaped());
  }

  /** Reads an escape of one character or class, and returns it in JavaScript's syntax. */
  #escaped(): string {
    const rest = this.#source.slice(this.#at + 1, this.#at + 40);
    const [text = '', hex, letter] =
      /^(?:x\{([\da-fA-F]{1,6})\}|p([A-Z])|[pP]\{\^?[\w=]+\}|x[\da-fA-F]{2}|u[\da-fA-F]{4}|[dDwWsStnrfv])/.exec(
        rest,
      ) ?? [];
    if (text !== '') {
      this.#at += 1 + text.length;
      if (hex !== undefined) return `\\u{${hex}}`;
      return letter === undefined ? `\\${text}` : `\\p{${letter}}`;
    }
    const literal = rest === '' ? '' : String.fromCodePoint(rest.codePointAt(0) as number);
    if (literal === '') throw this.#mistake('ends with a backslash');
    if (/[1-9]/.test(literal)) throw this.#mistake('refers back to a group, which is not supported');
    if (/[\da-zA-Z]/.test(literal)) throw this.#mistake(`has an unknown escape \\${literal}`);
    this.#at += 1 + literal.length;
    return quoted(literal);
  }

  /** Reads a class such as `[a-z\d]`, and returns it in JavaScript's syntax. */
  #class(): string {
    let text = '[';
    this.#at += 1;
    if (this.#takes('^')) text += '^';
    if (this.#takes(']')) text += '\\]';
    while (!this.#takes(']')) {
      if (this.#at >= this.#source.length) throw this.#mistake('has an unmatched [');
      const character = this.#source[this.#at] as string;
      if (this.#source.startsWith('[:', this.#at)) {
        throw this.#mistake('has a class such as [:alpha:], which is not supported; use \\p{L}');
      }
      if (character === '\\') text += this.#escaped();
      else {
        text += character === '[' ? '\\[' : character;
        this.#at += 1;
      }
    }
    return `${text}]`;
  }

  #literal(text: string): boolean {
    if (this.#flags.i) return this.#one(quoted(text));
    const code = text.codePointAt(0);
    this.#add({ kind: 'one', isOne: (one) => one === code });
    return true;
  }

  /** Adds a test of one character. JavaScript decides, which is fast for a single character. */
  #one(source: string): boolean {
    let one: RegExp;
    try {
      one = new RegExp(`^${source}$`, this.#flags.i ? 'iu' : 'u');
    } catch {
      throw this.#mistake(`has an invalid class ${source}`);
    }
    const ascii = Uint8Array.from({ length: 128 }, (_, code) => Number(one.test(String.fromCharCode(code))));
    this.#add({
      kind: 'one',
      isOne: (code) => (code < 128 ? ascii[code] === 1 : one.test(String.fromCodePoint(code))),
    });
    return true;
  }

  #assert(assertion: Assertion): boolean {
    this.#add({ kind: 'at', assertion });
    return false;
  }

  #add(instruction: Instruction): number {
    if (this.#instructions.length >= MAX_INSTRUCTIONS)
      throw this.#mistake('is too long when its parts are repeated');
    return this.#instructions.push(instruction) - 1;
  }

  #takes(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #mistake(what: string): EvaluationMistake {
    return new EvaluationMistake(`The regular expression ${what}: ${described(this.#source)}`);
  }
}

/** The instruction with all targets at or after `from` moved. */
function moved(instruction: Instruction, by: number, from: number): Instruction {
  const to = (target: number) => (target >= from ? target + by : target);
  if (instruction.kind === 'go') return { kind: 'go', to: to(instruction.to) };
  if (instruction.kind !== 'either') return instruction;
  return { kind: 'either', first: to(instruction.first), second: to(instruction.second) };
}

/** A character as JavaScript's regular expressions quote it. */
function quoted(character: string): string {
  return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
}
