/** What an operator says of the cluster that hosts control planes: one file, JSON or YAML. */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { z } from 'zod'
import { KUBERNETES_RELEASES } from '../../kit/control-planes/versions.ts'

const Image = z.string().min(1).max(512)
const Words = z.record(z.string(), z.string())

const isOffered = (release: string): boolean => KUBERNETES_RELEASES.some((known) => known === release)

export const HostSettings = z.strictObject({
  images: z.strictObject({
    etcd: Image,
    tunnel: Image,
    /** Of this project. */
    platform: Image,
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
  /** For all of them together; absent for all that the nodes have. */
  memoryMebibytes: z.int().min(1).optional(),
  /** Nodes that they run on. */
  nodeSelector: Words.default({}),
  tolerations: z.array(z.record(z.string(), z.unknown())).default([]),
  /** Who the host process is in the cluster, and the role that it gives itself in each namespace of a control plane;
   *  absent where it has its rights everywhere. */
  rights: z.strictObject({ serviceAccount: z.string(), namespace: z.string(), clusterRole: z.string() }).optional(),
})
export type HostSettings = z.infer<typeof HostSettings>

/** Throws with every fault of the file. */
export async function readSettings(file: string): Promise<HostSettings> {
  const read = HostSettings.safeParse(parse(await readFile(file, 'utf8')))
  if (!read.success) throw new Error(`${file}: ${z.prettifyError(read.error)}`)
  return read.data
}

/** Those that it has images of, newest last. */
export const releasesOf = ({ images }: HostSettings): string[] =>
  KUBERNETES_RELEASES.filter((release) => Object.hasOwn(images.releases, release))
