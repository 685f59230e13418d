// Runs before the first paint, so that a dark page does not flash white. The content security policy forbids inline scripts.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('flowhook-color-scheme');
  } catch {
    // Storage is blocked: follow the system.
  }
  const isDark =
    chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light');
})();
