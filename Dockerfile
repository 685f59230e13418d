# The service as an image: `docker build -t flowhook .` in a clone. Nothing in it depends on the kind of processor.
# docs/operate/install.md says how it is run; it needs to write nothing but /data and /tmp.

# The base image is named by its tag. To pin what was built and tried, append the digest that
# `docker buildx imagetools inspect node:26-slim` prints to both lines: node:26-slim@sha256:…
FROM node:26-slim AS build
WORKDIR /src
# First what says which packages there are, so that a change of the code does not install them again.
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
COPY dashboard/package.json dashboard/
COPY toolchain/package.json toolchain/
# The optional ones are Node itself and PostgreSQL, for those who develop. Vite's compiler is optional to npm, but needed.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm pack --pack-destination /tmp \
 && mkdir /app && tar -xzf /tmp/flowhook-*.tgz --strip-components=1 -C /app
# What is left are the packages that the service runs with, at the versions of the lock file.
# .npmrc asks for the optional ones, whatever is left out.
RUN rm .npmrc && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
 && find node_modules -type l -delete \
 && mv node_modules /app/

FROM node:26-slim
# Reaps what a run leaves behind and passes signals on: the service would else be process 1.
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /app /app
RUN ln -s /app/bin/flowhook.js /usr/local/bin/flowhook \
 && install -d -o node -g node -m 0700 /data
# What Node has compiled is kept where only this user can write; root (docker exec --user root) leaves that alone.
ENV NODE_ENV=production \
    FLOWHOOK_HOST=0.0.0.0 \
    FLOWHOOK_PORT=8080 \
    FLOWHOOK_DATA=/data \
    XDG_CACHE_HOME=/data/.cache
# Where flowhook.yaml, workflows/ and secrets/ are looked for; mount them there, read-only.
WORKDIR /flowhook
USER node
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FLOWHOOK_PORT}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "flowhook"]
CMD ["serve"]
