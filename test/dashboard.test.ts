/** What people do in the dashboard, in a real browser, which all cases of a process share. */
import './dashboard/administration.ts';
import './dashboard/data.ts';
import './dashboard/keyboard.ts';
import './dashboard/runs.ts';
import './dashboard/sign-in.ts';
import './dashboard/webhooks.ts';
import './dashboard/welcome.ts';
