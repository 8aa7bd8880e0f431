/** An operator's settings for the cluster that hosts control planes: one file, JSON or YAML. */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { z } from 'zod'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import { KUBERNETES_RELEASES } from '../../domain/kubernetes-cluster/versions.ts'

const Image = z.string().min(1).max(512)
const Words = z.record(z.string(), z.string())

const isOffered = (release: string): boolean => KUBERNETES_RELEASES.some((known) => known === release)

const Settings = z.strictObject({
  images: z.strictObject({
    etcd: Image,
    tunnel: Image,
    /** Image of this project. */
    platform: Image,
    /** Sidecars between Kubernetes and the driver of volumes. Without them clusters have no volumes. */
    sidecars: z
      .strictObject({
        provisioner: Image,
        attacher: Image,
        resizer: Image,
        snapshotter: Image,
        snapshotController: Image,
      })
      .optional(),
    /** By release; newest last. */
    releases: z
      .record(z.string(), z.strictObject({ apiserver: Image, controllerManager: Image, scheduler: Image }))
      .refine((releases) => Object.keys(releases).length > 0, 'at least one release')
      .refine(
        (releases) => Object.keys(releases).every((release) => isOffered(release)),
        `releases are ${KUBERNETES_RELEASES.join(' and ')}`,
      ),
  }),
  /** Storage of each member of etcd; without a class the cluster's default is used. */
  storage: z.strictObject({
    className: z.string().optional(),
    mebibytesOfOne: z.int().min(512).default(8_192),
    /** Total size that the class provides. */
    mebibytes: z.int().min(512),
  }),
  /** How clients and nodes reach the API of a cluster: through a load balancer of the host cluster, or through ports of
   *  its nodes at an address that points to them. */
  endpoint: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('LoadBalancer'), annotations: Words.default({}) }),
    z.strictObject({ type: z.literal('NodePort'), address: z.string().min(1).max(253) }),
  ]),
  /** Where the host process runs, in the form of network policies. */
  from: z.array(z.record(z.string(), z.unknown())).min(1),
  /** The API of the platform, which add-ons of clusters call: its address, and its destinations in the form of network
   *  policies (anywhere when empty). Without it clusters have only the add-ons of their nodes. */
  platform: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      port: z.int().min(1).max(65_535),
      to: z.array(z.record(z.string(), z.unknown())).default([]),
    })
    .optional(),
  /** Definitions of the kinds of snapshots, in YAML, from the release of the snapshotter. */
  snapshotKinds: z.string().default(''),
  /** For all control planes together; when absent, all memory of the nodes. */
  memoryMebibytes: z.int().min(1).optional(),
  /** Selects the nodes for control planes. */
  nodeSelector: Words.default({}),
  tolerations: z.array(z.record(z.string(), z.unknown())).default([]),
  /** The service account of the host process, and the role that it grants itself in the namespace of each control
   *  plane; absent when it has its rights in the complete cluster. */
  rights: z.strictObject({ serviceAccount: z.string(), namespace: z.string(), clusterRole: z.string() }).optional(),
})
export const HostSettings = Settings.refine(
  ({ images, snapshotKinds }) => images.sidecars === undefined || snapshotKinds.trim() !== '',
  'sidecars of the driver of volumes need snapshotKinds',
)
export type HostSettings = z.infer<typeof HostSettings>

/** Throws an error that lists every fault of the file. */
export async function readSettings(file: string): Promise<HostSettings> {
  const read = HostSettings.safeParse(parse(await readFile(file, 'utf8')))
  if (!read.success) throw new Error(`${file}: ${z.prettifyError(read.error)}`)
  return read.data
}

/** Add-ons that can run beside control planes here. */
export const addonsOf = ({ platform, images }: HostSettings): readonly AddonName[] => {
  if (platform === undefined) return []
  return images.sidecars === undefined ? ['cloud-controller'] : ['cloud-controller', 'csi-driver']
}

/** Releases with images, newest last. */
export const releasesOf = ({ images }: HostSettings): string[] =>
  KUBERNETES_RELEASES.filter((release) => Object.hasOwn(images.releases, release))
