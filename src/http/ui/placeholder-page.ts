/** The page in place of the dashboard or the guide while it is being built, or where it was not. */
import type { BuildTarget } from './build-targets.ts';

/** `none`: no build is running, because it is done or not possible here. */
export type BuildState = 'none' | 'building' | 'failed';

const words = ({ name, folder }: BuildTarget): Record<BuildState, { title: string; text: string }> => ({
  building: {
    title: `The ${name} is being built`,
    text: 'This takes some seconds, once. The page comes by itself; the API is up already.',
  },
  failed: {
    title: `The ${name} could not be built`,
    text: `The log of the service says why, in its line <code>${name}.not_built</code>. In the repository, <code>npm run build</code> builds it as well. The API is not affected.`,
  },
  none: {
    title: `The ${name} is not part of this installation`,
    text: `Its files are missing in <code>${folder}/dist</code>. In the repository, <code>npm ci &amp;&amp; npm run build</code> makes them. The API is not affected.`,
  },
});

const STYLE =
  ':root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif } main { margin: 20vh auto; max-width: 34rem; padding: 0 1rem }';

/** While a build is running the page reloads itself, without a script. */
export function placeholderPage(what: BuildTarget, state: BuildState, nonce: string): string {
  const { title, text } = words(what)[state];
  const reload = state === 'building' ? '\n<meta http-equiv="refresh" content="2">' : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">${reload}
<link rel="icon" href="data:,">
<title>${title}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body><main><h1>${title}</h1><p>${text}</p><p>What the API offers: <a href="/docs">/docs</a></p></main></body>
</html>
`;
}
