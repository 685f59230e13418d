// Runs before anything is drawn, so that a dark page does not flash white. No inline script: the policy forbids it.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('flowhook-color-scheme');
  } catch {
    // Storage is forbidden: follow the system.
  }
  const isDark =
    chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light');
})();
