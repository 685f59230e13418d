/**
 * The commands of the guides work as pasted.
 *
 * `GUIDES=all node --test test/docs/commands-guides.test.ts` is the long form. The short one runs a few small guides.
 */
import { testPages } from '../support/docs/page-script.ts';

const FEW = ['command', 'push', 'schedule', 'verify-webhooks'].map((name) => `docs/guides/${name}.md`);

testPages((page) => (process.env.GUIDES === 'all' ? page.startsWith('docs/guides/') : FEW.includes(page)));
