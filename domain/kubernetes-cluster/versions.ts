/** Versions of third-party programs that control planes and their nodes run. One command builds them. */

/** Newest last; one patch release of each minor. */
export const KUBERNETES_RELEASES = ['1.35.4', '1.36.3'] as const
/** Of dev clusters; newest last. */
export const DEV_CLUSTER_RELEASES: readonly string[] = ['1.36.3']
/** The program that provides volumes to dev clusters. */
export const LOCAL_PATH_VERSION = 'v0.0.30'
export const ETCD_VERSION = 'v3.6.9'
/** Of both ends of the tunnel from API servers to nodes. */
export const TUNNEL_VERSION = 'v0.34.0'
export const COREDNS_VERSION = '1.15.0'
export const PAUSE_VERSION = '1'
/** The programs between Kubernetes and a driver of storages, each with its own version. */
export const CSI_SIDECARS = {
  provisioner: 'v6.4.0',
  attacher: 'v4.13.0',
  resizer: 'v2.3.0',
  snapshotter: 'v8.7.0',
} as const
/** Of the snapshotter's controller, for every driver, and of the kinds that both use. */
export const SNAPSHOT_CONTROLLER_VERSION = CSI_SIDECARS.snapshotter
export const SNAPSHOT_KINDS_FILE = 'snapshot-kinds.yaml'
export const BUILD_KUBERNETES_COMMAND = 'npm run build:kubernetes'

/** Names of images that come with the image of nodes: no registry has them. */
export const COREDNS_IMAGE = `images.svccloud.internal/coredns:${COREDNS_VERSION}`
export const PAUSE_IMAGE = `images.svccloud.internal/pause:${PAUSE_VERSION}`
/** Creates directories of volumes, with Debian's busybox. */
export const BUSYBOX_IMAGE = 'images.svccloud.internal/busybox:13'
