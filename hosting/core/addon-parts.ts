/** The programs that run beside the control plane of each cluster, and speak to the platform with a token of the
 *  cluster, as every host has them: what each may do in the cluster, what it is told, and what they need there. */
import { parseAllDocuments } from 'yaml'
import type { CSI_SIDECARS } from '../../domain/kubernetes-cluster/versions.ts'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { apply, type KubeApi, send } from './kube-api.ts'

/** A program, and the user that it is in the cluster. */
export interface AddonUser {
  readonly name: string
  /** As a rule of RBAC has it; without any it does not get into the cluster. */
  readonly rules: readonly object[]
}

export interface AddonObject {
  /** Of its collection. */
  readonly path: string
  /** One that is the cluster's own from then on: made where there is none, and never changed. */
  readonly isOwn: boolean
  readonly body: {
    readonly metadata: { readonly name: string; readonly annotations?: object }
    readonly [field: string]: unknown
  }
}

/** What a program of this project is told. */
export interface PlatformPlace {
  readonly apiUrl: string
  readonly tokenFile: string
  readonly clusterId: string
  readonly zone: string
}

export const platformSettings = ({ apiUrl, tokenFile, clusterId, zone }: PlatformPlace) => ({
  SVCCLOUD_URL: apiUrl,
  SVCCLOUD_TOKEN_FILE: tokenFile,
  SVCCLOUD_CLUSTER_ID: clusterId,
  SVCCLOUD_ZONE: zone,
})

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const RBAC_GROUP = 'rbac.authorization.k8s.io'
const [NOT_FOUND, CONFLICT] = [404, 409]
/** How long a kind that was just defined may take until it is served, and between two looks. */
const [SERVED_MILLISECONDS, LOOK_MILLISECONDS] = [5_000, 100]
const STORAGE = 'storage.k8s.io'
const SNAPSHOTS = 'snapshot.storage.k8s.io'
const DRIVER = 'csi.svccloud.dev'

const reading = ['get', 'list', 'watch']
const rule = (apiGroup: string, resources: readonly string[], verbs: readonly string[]) => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
})
const EVENTS = rule('', ['events'], [...reading, 'create', 'update', 'patch'])

export type Sidecar = keyof typeof CSI_SIDECARS

/** As each of them says that it needs it. */
const SIDECARS: Readonly<Record<Sidecar, { readonly rules: readonly object[]; readonly flags: readonly string[] }>> = {
  provisioner: {
    flags: ['--default-fstype=ext4', '--extra-create-metadata'],
    rules: [
      rule('', ['persistentvolumes'], [...reading, 'create', 'patch', 'delete']),
      rule('', ['persistentvolumeclaims'], [...reading, 'update']),
      rule('', ['nodes'], reading),
      rule(STORAGE, ['storageclasses', 'csinodes', 'volumeattachments', 'volumeattributesclasses'], reading),
      rule(SNAPSHOTS, ['volumesnapshots'], reading),
      rule(SNAPSHOTS, ['volumesnapshotcontents'], ['get', 'list']),
      EVENTS,
    ],
  },
  attacher: {
    flags: [],
    rules: [
      rule('', ['persistentvolumes'], [...reading, 'patch']),
      rule(STORAGE, ['csinodes'], reading),
      rule(STORAGE, ['volumeattachments'], [...reading, 'patch']),
      rule(STORAGE, ['volumeattachments/status'], ['patch']),
    ],
  },
  resizer: {
    flags: [],
    rules: [
      rule('', ['persistentvolumes'], [...reading, 'patch']),
      rule('', ['persistentvolumeclaims'], reading),
      rule('', ['persistentvolumeclaims/status'], ['patch']),
      rule('', ['pods'], reading),
      rule(STORAGE, ['volumeattributesclasses'], reading),
      EVENTS,
    ],
  },
  snapshotter: {
    flags: ['--extra-create-metadata'],
    rules: [
      rule(SNAPSHOTS, ['volumesnapshotclasses'], reading),
      rule(SNAPSHOTS, ['volumesnapshotcontents'], [...reading, 'update', 'patch']),
      rule(SNAPSHOTS, ['volumesnapshotcontents/status'], ['update', 'patch']),
      EVENTS,
    ],
  },
}
const SNAPSHOT_CONTROLLER = [
  rule('', ['persistentvolumes'], reading),
  rule('', ['persistentvolumeclaims'], [...reading, 'update']),
  rule(SNAPSHOTS, ['volumesnapshotclasses'], reading),
  rule(SNAPSHOTS, ['volumesnapshotcontents'], [...reading, 'create', 'update', 'patch', 'delete']),
  rule(SNAPSHOTS, ['volumesnapshotcontents/status'], ['patch']),
  rule(SNAPSHOTS, ['volumesnapshots'], [...reading, 'create', 'update', 'patch', 'delete']),
  rule(SNAPSHOTS, ['volumesnapshots/status'], ['update', 'patch']),
  EVENTS,
]

/** Programs of each add-on, in the order of their start. */
export const CLOUD_USER: AddonUser = {
  name: 'cloud-controller',
  rules: [
    rule('', ['nodes', 'services'], ['list', 'watch', 'patch']),
    rule('', ['services/status'], ['patch']),
    rule('events.k8s.io', ['events'], ['get', 'create', 'patch']),
  ],
}
export const CSI_CONTROLLER: AddonUser = { name: 'csi-controller', rules: [] }
export const SNAPSHOT_CONTROLLER_USER: AddonUser = { name: 'csi-snapshot-controller', rules: SNAPSHOT_CONTROLLER }
export const sidecarUser = (kind: Sidecar): AddonUser => ({ name: `csi-${kind}`, rules: SIDECARS[kind].rules })
export const SIDECAR_KINDS: readonly Sidecar[] = ['provisioner', 'attacher', 'resizer', 'snapshotter']

/** Of a program that stands between Kubernetes and the driver at that socket. */
export const sidecarFlags = (kind: Sidecar, kubeconfig: string, socket: string): readonly string[] => [
  `--kubeconfig=${kubeconfig}`,
  `--csi-address=${socket}`,
  '--timeout=60s',
  // A claim of the first pod of a node comes before the driver is known there: it is not left alone for minutes.
  '--retry-interval-max=30s',
  ...SIDECARS[kind].flags,
]

/** Definitions of kinds, as the project of the snapshotter publishes them. Throws for what is no YAML. */
export function kindsOf(text: string): readonly AddonObject[] {
  // There is nothing between two separators.
  const bodies = parseAllDocuments(text).map((document) => document.toJS() as AddonObject['body'] | null)
  return bodies
    .filter((body) => body !== null)
    .map((body) => ({ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', isOwn: false, body }))
}

/** What the driver needs in a cluster besides. */
export const CSI_OBJECTS: readonly AddonObject[] = [
  {
    path: `/apis/${STORAGE}/v1/csidrivers`,
    isOwn: false,
    body: {
      apiVersion: `${STORAGE}/v1`,
      kind: 'CSIDriver',
      metadata: { name: DRIVER },
      spec: { attachRequired: true, podInfoOnMount: false, fsGroupPolicy: 'File' },
    },
  },
  {
    // Another class may be the default of the cluster: whoever says so is not overruled.
    path: `/apis/${STORAGE}/v1/storageclasses`,
    isOwn: true,
    body: {
      apiVersion: `${STORAGE}/v1`,
      kind: 'StorageClass',
      provisioner: DRIVER,
      metadata: { name: 'svccloud', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      volumeBindingMode: 'WaitForFirstConsumer',
      allowVolumeExpansion: true,
      reclaimPolicy: 'Delete',
    },
  },
  {
    path: `/apis/${SNAPSHOTS}/v1/volumesnapshotclasses`,
    isOwn: true,
    body: {
      apiVersion: `${SNAPSHOTS}/v1`,
      kind: 'VolumeSnapshotClass',
      driver: DRIVER,
      deletionPolicy: 'Delete',
      metadata: { name: 'svccloud', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    },
  },
]

/** An add-on as what it needs in the cluster goes. */
export interface AddonNeeds {
  readonly name: AddonName
  readonly programs: readonly AddonUser[]
  readonly objects: readonly AddonObject[]
}

/** No token of the platform names such a user: names of the system are not for people. */
export const userOf = ({ name }: AddonUser): string => `system:svccloud:${name}`

/** Its objects, and the rights of its programs. May be said at every start. */
export async function applyAddon(api: KubeApi, { programs, objects }: AddonNeeds, clock: Clock): Promise<void> {
  for (const { path, isOwn, body } of objects)
    if (isOwn) await make(api, path, body, clock)
    else await apply(api, path, body)
  for (const program of programs) if (program.rules.length > 0) await allow(api, program)
}

/** Unless it is there. Its kind may have been defined a moment ago. */
async function make(api: KubeApi, path: string, body: object, clock: Clock): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + SERVED_MILLISECONDS
  for (;;) {
    const isLast = clock.monotonicMilliseconds() > deadline
    const { status } = await send(api, 'POST', path, { body, accepted: isLast ? [CONFLICT] : [CONFLICT, NOT_FOUND] })
    if (status !== NOT_FOUND) return
    await clock.sleep(LOOK_MILLISECONDS)
  }
}

/** In the whole cluster, by its rules. */
async function allow(api: KubeApi, program: AddonUser): Promise<void> {
  const named = { apiVersion: `${RBAC_GROUP}/v1`, metadata: { name: `svccloud:${program.name}` } }
  await apply(api, `${RBAC}/clusterroles`, { ...named, kind: 'ClusterRole', rules: program.rules })
  await apply(api, `${RBAC}/clusterrolebindings`, {
    ...named,
    kind: 'ClusterRoleBinding',
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: named.metadata.name },
    subjects: [{ apiGroup: RBAC_GROUP, kind: 'User', name: userOf(program) }],
  })
}
