/** The client that all pages share. It calls the public API, authenticated by the session cookie instead of a key. */
import { Flowhook } from '../../client/src/flowhook-client.ts';

export const flowhook = new Flowhook({ url: `${location.origin}/ui/api` });

/** The address for commands and code samples. */
export const serviceUrl = location.origin;
