/** Starts the dashboard. A one-time link carries its token in the fragment, which no server sees and no log keeps. */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import '@mantine/spotlight/styles.css';
import './app.css';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { takeToken } from './session.tsx';

const token = takeToken();
// A link that is opened where the dashboard stands already changes nothing but the fragment.
addEventListener('hashchange', () => location.hash.startsWith('#/welcome/') && location.reload());
const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<App token={token} />);
