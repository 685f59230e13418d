/** What a line says: addresses can be followed, what is searched for stands out. Always as text. */
import { Mark } from '@mantine/core';

const ADDRESSES = /(https?:\/\/[^\s"'<>)\]}]+)/;

export function LogText({ text, search }: { text: string; search: string }) {
  // With one group to split by, every second part is an address.
  return text.split(ADDRESSES).map((part, index) => {
    const key = `${index} ${part}`;
    return index % 2 === 0 ? (
      <Found key={key} text={part} search={search} />
    ) : (
      <a key={key} href={part} target="_blank" rel="noopener noreferrer">
        <Found text={part} search={search} />
      </a>
    );
  });
}

function Found({ text, search }: { text: string; search: string }) {
  if (search === '') return text;
  const parts: { text: string; at: number; isFound: boolean }[] = [];
  const lower = text.toLowerCase();
  let at = 0;
  for (
    let next = lower.indexOf(search.toLowerCase());
    next >= 0;
    next = lower.indexOf(search.toLowerCase(), at)
  ) {
    parts.push({ text: text.slice(at, next), at, isFound: false });
    parts.push({ text: text.slice(next, next + search.length), at: next, isFound: true });
    at = next + search.length;
  }
  parts.push({ text: text.slice(at), at, isFound: false });
  return parts.map((part) =>
    part.isFound ? <Mark key={`found ${part.at}`}>{part.text}</Mark> : <span key={part.at}>{part.text}</span>,
  );
}
