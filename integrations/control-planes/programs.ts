/** The third-party programs of clusters, in the order in which a new operator needs them: their paths on a host, and
 *  the features that are missing without them. */
import { join } from 'node:path'
import {
  BUILD_KUBERNETES_COMMAND,
  COREDNS_VERSION,
  CSI_SIDECARS,
  ETCD_VERSION,
  KUBERNETES_RELEASES,
  LOCAL_PATH_VERSION,
  PAUSE_VERSION,
  SNAPSHOT_CONTROLLER_VERSION,
  SNAPSHOT_KINDS_FILE,
  TUNNEL_VERSION,
} from '../../domain/kubernetes-cluster/versions.ts'
import { isThere } from '../../kit/sys/is-there.ts'

export type KubernetesRelease = (typeof KUBERNETES_RELEASES)[number]

/** Programs of each release of Kubernetes. */
export type ReleaseProgram = 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kubelet' | 'kube-proxy'

export const NEWEST_RELEASE: KubernetesRelease = '1.36.3'

/** Name of the tool that builds it; for an older release it contains the release. */
export const toolOf = (program: ReleaseProgram, release: KubernetesRelease) =>
  release === '1.36.3' ? program : (`${program}-1.35` as const)

/** Folders of the other programs, within the folder of tools: their versions. */
export const PROGRAM_VERSIONS = {
  etcd: ETCD_VERSION,
  etcdutl: ETCD_VERSION,
  'konnectivity-server': TUNNEL_VERSION,
  'konnectivity-agent': TUNNEL_VERSION,
  coredns: `v${COREDNS_VERSION}`,
  pause: `pause-${PAUSE_VERSION}`,
  'csi-provisioner': CSI_SIDECARS.provisioner,
  'csi-attacher': CSI_SIDECARS.attacher,
  'csi-resizer': CSI_SIDECARS.resizer,
  'csi-snapshotter': CSI_SIDECARS.snapshotter,
  'snapshot-controller': SNAPSHOT_CONTROLLER_VERSION,
  'snapshot-kinds': SNAPSHOT_CONTROLLER_VERSION,
  'local-path-provisioner': LOCAL_PATH_VERSION,
} as const

const ofRelease = (name: ReleaseProgram, release: KubernetesRelease, seconds: number) => ({
  tool: toolOf(name, release),
  path: join(`v${release}`, name),
  seconds,
})
const other = <Tool extends keyof typeof PROGRAM_VERSIONS>(tool: Tool, seconds: number, file: string = tool) => ({
  tool,
  path: join(PROGRAM_VERSIONS[tool], file),
  seconds,
})

/** Feature that is missing without a control plane. */
export const CLUSTERS = 'Kubernetes clusters'

/** Features that are missing while one of their programs is missing. `seconds`: processor time of a first build on one
 *  processor, in this order, because shared sources are compiled once. `path`: below the folder of tools. The times of
 *  a release were measured together. */
export const purposesOf = (release: KubernetesRelease) =>
  [
    {
      name: CLUSTERS,
      programs: [
        other('etcd', 77),
        other('etcdutl', 2),
        ofRelease('kube-apiserver', release, 360),
        ofRelease('kube-controller-manager', release, 90),
        ofRelease('kube-scheduler', release, 50),
      ],
    },
    {
      name: 'nodes of clusters',
      programs: [
        other('konnectivity-server', 97),
        ofRelease('kubelet', release, 70),
        ofRelease('kube-proxy', release, 30),
        other('konnectivity-agent', 5),
        other('coredns', 172),
        other('pause', 1),
      ],
    },
    {
      name: 'volumes of clusters',
      programs: [
        other('csi-provisioner', 306),
        other('csi-attacher', 6),
        other('csi-resizer', 12),
        other('csi-snapshotter', 7),
        other('snapshot-controller', 6),
        other('snapshot-kinds', 1, SNAPSHOT_KINDS_FILE),
      ],
    },
    {
      name: 'dev cluster volumes',
      programs: [other('local-path-provisioner', 113)],
    },
  ] as const

export interface MissingPrograms {
  /** The missing feature. */
  readonly purpose: string
  /** At least one, with the names that the build tool uses. */
  readonly tools: readonly string[]
  /** Processor time on one processor. */
  readonly seconds: number
}

/** Missing programs in the folder by feature, in the order of need; empty when clusters have everything. For the
 *  default release, unless only another release has everything that control planes need. */
export async function missingPrograms(folder: string): Promise<readonly MissingPrograms[]> {
  const ofReleases = await Promise.all(KUBERNETES_RELEASES.toReversed().map((release) => missingOf(folder, release)))
  // The newest release comes first: another one counts only if it is usable and the newest is not.
  return ofReleases.find(([first]) => first?.purpose !== CLUSTERS) ?? ofReleases[0] ?? []
}

async function missingOf(folder: string, release: KubernetesRelease): Promise<readonly MissingPrograms[]> {
  const missing: MissingPrograms[] = []
  for (const { name: purpose, programs } of purposesOf(release)) {
    const there = await Promise.all(programs.map(({ path }) => isThere(join(folder, path))))
    const absent = programs.filter((_, index) => there[index] !== true)
    if (absent.length > 0)
      missing.push({
        purpose,
        tools: absent.map(({ tool }) => tool),
        seconds: absent.reduce((sum, { seconds }) => sum + seconds, 0),
      })
  }
  return missing
}

const MINUTE_SECONDS = 60

/** For people: what is missing, who must do what, and how long that takes with this many free processors. */
export function missingText({ tools, seconds }: MissingPrograms, processors: number): string {
  const minutes = Math.max(1, Math.ceil(seconds / processors / MINUTE_SECONDS))
  const time = `about ${minutes} minute${minutes === 1 ? '' : 's'} with ${processors} free processors`
  return `${tools.join(', ')} not built: the operator runs ${BUILD_KUBERNETES_COMMAND} (${time}), and starts again`
}
