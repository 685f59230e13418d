# Builds the service as an image: run `docker build -t flowhook .` in a clone. The image does not depend on the processor
# architecture, and writes only to /data and /tmp. docs/operate/install.md says how to run it.

# The base image: Debian with Node 26, npm, and the user node (1000). To pin the image that you tested, append the digest
# that `docker buildx imagetools inspect node:26-slim` prints: node:26-slim@sha256:…
ARG BASE=node:26-slim

FROM ${BASE} AS build
WORKDIR /src
# The package manifests come first, so that a change of the code does not reinstall the packages.
COPY package.json package-lock.json .npmrc ./
COPY dashboard/package.json dashboard/
COPY toolchain/package.json toolchain/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm pack --pack-destination /tmp \
 && mkdir /app && tar -xzf /tmp/flowhook-*.tgz --strip-components=1 -C /app

# The package contains all its code: apart from Node, nothing else is installed.
FROM ${BASE}
# tini reaps orphaned processes and forwards signals. Without it, the service would be process 1.
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /app /app
RUN ln -s /app/bin/flowhook.js /usr/local/bin/flowhook \
 && install -d -o node -g node -m 0700 /data
# Node's compile cache is in a directory that only this user can write to. Root (docker exec --user root) does not use it.
# glibc returns freed memory to the system, instead of keeping it for each thread.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    MALLOC_TRIM_THRESHOLD_=131072 \
    FLOWHOOK_HOST=0.0.0.0 \
    FLOWHOOK_PORT=8080 \
    FLOWHOOK_DATA=/data \
    XDG_CACHE_HOME=/data/.cache
# The service looks for flowhook.yaml, workflows/ and secrets/ here. Mount them read-only.
WORKDIR /flowhook
USER node
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FLOWHOOK_PORT}/readyz`).then((response) => process.exit(response.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "flowhook"]
CMD ["serve"]
