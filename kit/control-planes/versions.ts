/** Which programs of others control planes and their nodes run. One command builds them. */

/** Newest last; one patch release of each minor. */
export const KUBERNETES_RELEASES = ['1.35.4', '1.36.3'] as const
/** Of both ends of the tunnel from API servers to nodes. */
export const TUNNEL_VERSION = 'v0.34.0'
export const COREDNS_VERSION = '1.15.0'
export const PAUSE_VERSION = '1'
export const BUILD_KUBERNETES_COMMAND = 'npm run build:kubernetes'

/** Names of images that come with the image of nodes: no registry has them. */
export const COREDNS_IMAGE = `images.svccloud.internal/coredns:${COREDNS_VERSION}`
export const PAUSE_IMAGE = `images.svccloud.internal/pause:${PAUSE_VERSION}`
