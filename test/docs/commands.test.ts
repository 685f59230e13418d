/** What README, the first pages and those for operators let one type works as pasted; the guides have a file of their own. */
import { testPages } from '../support/docs/page-script.ts';

testPages((page) => !page.startsWith('docs/guides/'));
