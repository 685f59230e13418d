/** Tasks in the dashboard, in a real browser that all tests of this process share. */
import './administration.ts';
import './data.ts';
import './history.ts';
import './keyboard.ts';
import './messages.ts';
import './rules.ts';
import './runs.ts';
import './sign-in.ts';
import './webhooks.ts';
import './welcome.ts';
