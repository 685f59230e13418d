/** Headers that may also be sent to hosts that the definition does not name, in lower case. */
export const PLAIN_HEADERS: readonly string[] = [
  'accept',
  'accept-encoding',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'user-agent',
];
