/** What the guides let one type works as pasted. */
import { testPages } from '../support/docs/page-script.ts';

testPages((page) => page.startsWith('docs/guides/'));
