/** What the guides let one type works as pasted. */
import { testPages } from '../support/page-script.ts';

testPages((page) => page.startsWith('docs/guides/'));
