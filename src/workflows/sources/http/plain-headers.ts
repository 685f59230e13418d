/** Headers that may be told to anybody: also to hosts that a definition does not name. In lower case. */
export const PLAIN_HEADERS: readonly string[] = [
  'accept',
  'accept-encoding',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'user-agent',
];
