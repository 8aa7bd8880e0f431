/** Images of the programs of control planes in pods, from the binaries that `npm run build:kubernetes` builds: they
 *  contain nothing else. An operator with a registry that has the upstream images needs none of these. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ociArchive } from '../../agents/node/images/oci-archive.ts'
import { tarOf } from '../../agents/node/images/tar.ts'
import {
  CSI_SIDECARS,
  ETCD_VERSION,
  KUBERNETES_RELEASES,
  SNAPSHOT_CONTROLLER_VERSION,
  TUNNEL_VERSION,
} from '../../domain/kubernetes-cluster/versions.ts'
import { type KubernetesRelease, toolOf } from '../../integrations/control-planes/programs.ts'
import { buildTool, isBuilt, type Tool } from '../cluster/build.ts'

interface Image {
  readonly name: string
  /** By their names in it; its entry point is the first, unless set otherwise. */
  readonly programs: Readonly<Record<string, Tool>>
}

const PARTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const

const SIDECARS = ['provisioner', 'attacher', 'resizer', 'snapshotter'] as const

/** The full name of an image that is named without a registry. */
const named = (name: string, version: string): string => `docker.io/svccloud/${name}:${version}`

/** Names of the images, in the form of a host cluster's settings. */
export const controlPlaneImages = (releases: readonly KubernetesRelease[] = KUBERNETES_RELEASES) => ({
  etcd: named('etcd', ETCD_VERSION),
  tunnel: named('konnectivity-server', TUNNEL_VERSION),
  sidecars: {
    ...Object.fromEntries(SIDECARS.map((kind) => [kind, named(`csi-${kind}`, CSI_SIDECARS[kind])])),
    snapshotController: named('snapshot-controller', SNAPSHOT_CONTROLLER_VERSION),
  },
  releases: Object.fromEntries(
    releases.map((release) => [
      release,
      {
        apiserver: named('kube-apiserver', `v${release}`),
        controllerManager: named('kube-controller-manager', `v${release}`),
        scheduler: named('kube-scheduler', `v${release}`),
      },
    ]),
  ),
})

const imagesOf = (releases: readonly KubernetesRelease[]): readonly Image[] => [
  { name: named('etcd', ETCD_VERSION), programs: { etcd: 'etcd', etcdutl: 'etcdutl' } },
  { name: named('konnectivity-server', TUNNEL_VERSION), programs: { 'proxy-server': 'konnectivity-server' } },
  ...SIDECARS.map(
    (kind): Image => ({
      name: named(`csi-${kind}`, CSI_SIDECARS[kind]),
      programs: { [`csi-${kind}`]: `csi-${kind}` },
    }),
  ),
  {
    name: named('snapshot-controller', SNAPSHOT_CONTROLLER_VERSION),
    programs: { 'snapshot-controller': 'snapshot-controller' },
  },
  ...releases.flatMap((release) =>
    PARTS.map((part): Image => ({ name: named(part, `v${release}`), programs: { [part]: toolOf(part, release) } })),
  ),
]

/** Releases whose programs are built. */
export async function builtReleases(): Promise<readonly KubernetesRelease[]> {
  const areBuilt = await Promise.all(
    KUBERNETES_RELEASES.map(async (release) => Promise.all(PARTS.map((part) => isBuilt(toolOf(part, release))))),
  )
  return KUBERNETES_RELEASES.filter((_, index) => areBuilt[index]?.every(Boolean) === true)
}

/** Writes one file for each to the folder, and returns their paths. Builds missing programs. */
export async function writeControlPlaneImages(
  folder: string,
  releases: readonly KubernetesRelease[],
): Promise<readonly string[]> {
  const files: string[] = []
  for (const { name, programs } of imagesOf(releases)) {
    const inside = Object.entries(programs).map(async ([program, tool]) => ({
      name: `usr/local/bin/${program}`,
      content: await readFile(await buildTool(tool)),
      mode: 0o755,
    }))
    const config = { Entrypoint: Object.keys(programs).slice(0, 1), Env: ['PATH=/usr/local/bin'], WorkingDir: '/' }
    const file = join(folder, `${name.split('/').at(-1)?.replace(':', '-')}.tar`)
    await writeFile(file, ociArchive({ name, layers: [tarOf(await Promise.all(inside))], config }))
    files.push(file)
  }
  return files
}
