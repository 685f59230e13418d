/** The commands of README and of all pages except the guides work as pasted. */
import { testPages } from '../support/docs/page-script.ts';

testPages((page) => !page.startsWith('docs/guides/'));
