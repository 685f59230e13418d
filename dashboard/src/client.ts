/** The one client of the page: the same API as everybody's, with the session's cookie in place of a key. */
import { Flowhook } from 'flowhook-client';

export const flowhook = new Flowhook({ url: `${location.origin}/ui/api` });

/** What others have to use, and what commands name. */
export const serviceUrl = location.origin;
