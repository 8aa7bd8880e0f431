/** What an operator says of the cluster that hosts control planes: one file, JSON or YAML. */
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
    /** Of this project. */
    platform: Image,
    /** What stands between Kubernetes and the driver of volumes; without them clusters have none. */
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
  /** Of each member of etcd; without a class that of the cluster's default. */
  storage: z.strictObject({
    className: z.string().optional(),
    mebibytesOfOne: z.int().min(512).default(8_192),
    /** What the class has for all of them together. */
    mebibytes: z.int().min(512),
  }),
  /** How clients and nodes reach the API of a cluster: by a load balancer of the host cluster, or by ports of its nodes
   *  at an address that leads to them. */
  endpoint: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('LoadBalancer'), annotations: Words.default({}) }),
    z.strictObject({ type: z.literal('NodePort'), address: z.string().min(1).max(253) }),
  ]),
  /** Where the host process is, as network policies say it. */
  from: z.array(z.record(z.string(), z.unknown())).min(1),
  /** The API of the platform, which add-ons of clusters call: its address, and where that leads to as network policies
   *  say it, anywhere when empty. Without it clusters have no add-ons but those of their nodes. */
  platform: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      port: z.int().min(1).max(65_535),
      to: z.array(z.record(z.string(), z.unknown())).default([]),
    })
    .optional(),
  /** Definitions of the kinds of snapshots, YAML, of the release of the snapshotter. */
  snapshotKinds: z.string().default(''),
  /** For all of them together; absent for all that the nodes have. */
  memoryMebibytes: z.int().min(1).optional(),
  /** Nodes that they run on. */
  nodeSelector: Words.default({}),
  tolerations: z.array(z.record(z.string(), z.unknown())).default([]),
  /** Who the host process is in the cluster, and the role that it gives itself in each namespace of a control plane;
   *  absent where it has its rights everywhere. */
  rights: z.strictObject({ serviceAccount: z.string(), namespace: z.string(), clusterRole: z.string() }).optional(),
})
export const HostSettings = Settings.refine(
  ({ images, snapshotKinds }) => images.sidecars === undefined || snapshotKinds.trim() !== '',
  'sidecars of the driver of volumes need snapshotKinds',
)
export type HostSettings = z.infer<typeof HostSettings>

/** Throws with every fault of the file. */
export async function readSettings(file: string): Promise<HostSettings> {
  const read = HostSettings.safeParse(parse(await readFile(file, 'utf8')))
  if (!read.success) throw new Error(`${file}: ${z.prettifyError(read.error)}`)
  return read.data
}

/** What can run beside control planes here. */
export const addonsOf = ({ platform, images }: HostSettings): readonly AddonName[] => {
  if (platform === undefined) return []
  return images.sidecars === undefined ? ['cloud-controller'] : ['cloud-controller', 'csi-driver']
}

/** Those that it has images of, newest last. */
export const releasesOf = ({ images }: HostSettings): string[] =>
  KUBERNETES_RELEASES.filter((release) => Object.hasOwn(images.releases, release))
