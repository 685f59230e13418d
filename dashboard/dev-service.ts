/** During development, proxies API calls to a running service at `FLOWHOOK_URL` (default: `http://127.0.0.1:8080`). */
import type { Plugin } from 'vite';

/**
 * With `FLOWHOOK_KEY`, every call uses that key and no sign-in is needed, for services without sessions and for scripts.
 */
export function service(): Plugin {
  const { FLOWHOOK_URL: url = 'http://127.0.0.1:8080', FLOWHOOK_KEY: key } = process.env;
  return {
    name: 'flowhook:service',
    apply: 'serve',
    config: () => ({
      server: {
        proxy: {
          '/ui/api': {
            target: url,
            changeOrigin: key !== undefined,
            ...(key === undefined
              ? {}
              : {
                  headers: { 'x-api-key': key },
                  rewrite: (path: string) => path.slice('/ui/api'.length),
                }),
          },
          '/docs': url,
          '/openapi.json': url,
        },
      },
    }),
    configureServer({ middlewares }) {
      if (key === undefined) return;
      middlewares.use('/ui/api/session', async (_request, response) => {
        const me = await fetch(`${url}/v1/me`, { headers: { 'x-api-key': key } });
        const { team, key: of } = (await me.json()) as { team: { slug: string }; key: object };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ team: { ...team, name: team.slug }, key: of, expiresAt: null }));
      });
    },
  };
}
