/** Programs that run beside the control plane of each cluster and call the platform with a token of the cluster.
 *  Defined for every kind of host: their rights in the cluster, their settings, and the objects that they need there.
 */
import { parseAllDocuments } from 'yaml'
import type { z } from 'zod'
import type { CloudControllerSettings, CsiControllerSettings } from '../../addons/settings.ts'
import type { CSI_SIDECARS } from '../../domain/kubernetes-cluster/versions.ts'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { SETTINGS_VARIABLE } from '../../kit/sys/settings.ts'
import { apply, type KubeApi, send } from './kube-api.ts'

/** A program and its user in the cluster. */
export interface AddonUser {
  readonly name: string
  /** Rules of RBAC. A program without rules has no access to the cluster. */
  readonly rules: readonly object[]
}

export interface AddonObject {
  /** Path of its collection. */
  readonly path: string
  /** The object belongs to the cluster: it is created if it is missing, and never changed. */
  readonly isOwn: boolean
  readonly body: {
    readonly metadata: { readonly name: string; readonly annotations?: object }
    readonly [field: string]: unknown
  }
}

/** What a program of this project needs to know of its cluster and of the platform. */
export interface PlatformPlace {
  readonly apiUrl: string
  readonly tokenFile: string
  readonly clusterId: string
  readonly zone: string
}

const platformOf = ({ apiUrl: url, tokenFile, clusterId }: PlatformPlace) => ({ url, tokenFile, clusterId })

/** Environment of the controller of volumes: its settings. */
export const csiEnvironment = (place: PlatformPlace, csiSocket: string) =>
  withSettings<typeof CsiControllerSettings>({ ...platformOf(place), zone: place.zone, csiSocket })

/** Environment of the cloud controller: its settings. `kubeconfig` is the path of its file. */
export const cloudEnvironment = (place: PlatformPlace, kubeconfig: string) =>
  withSettings<typeof CloudControllerSettings>({ ...platformOf(place), kubeconfig })

const withSettings = <Schema extends z.ZodObject>(settings: z.input<Schema>) => ({
  [SETTINGS_VARIABLE]: JSON.stringify(settings),
})

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const RBAC_GROUP = 'rbac.authorization.k8s.io'
const [NOT_FOUND, CONFLICT] = [404, 409]
/** Time until a newly defined kind is served, and pause between two attempts. */
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

/** Rules and flags, as documented for each sidecar. */
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

/** Flags of a sidecar between Kubernetes and the driver at that socket. */
export const sidecarFlags = (kind: Sidecar, kubeconfig: string, socket: string): readonly string[] => [
  `--kubeconfig=${kubeconfig}`,
  `--csi-address=${socket}`,
  '--timeout=60s',
  // The claim of a node's first pod arrives before the driver is known there; without this, its retries are minutes
  // apart.
  '--retry-interval-max=30s',
  ...SIDECARS[kind].flags,
]

/** Definitions of kinds, as the snapshotter project publishes them. Throws for invalid YAML. */
export function kindsOf(text: string): readonly AddonObject[] {
  // The text between two separators may be empty.
  const bodies = parseAllDocuments(text).map((document) => document.toJS() as AddonObject['body'] | null)
  return bodies
    .filter((body) => body !== null)
    .map((body) => ({ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', isOwn: false, body }))
}

/** Other objects that the driver needs in a cluster. */
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
    // The cluster may have another default class, which must stay the default.
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

/** The needs of an add-on in the cluster. */
export interface AddonNeeds {
  readonly name: AddonName
  readonly programs: readonly AddonUser[]
  readonly objects: readonly AddonObject[]
}

/** Name of a program's user. No token of the platform contains it, because people have no names that start with
 *  `system:`. */
export const userOf = ({ name }: AddonUser): string => `system:svccloud:${name}`

/** Applies the objects of an add-on and the rights of its programs. May be repeated at every start. */
export async function applyAddon(api: KubeApi, { programs, objects }: AddonNeeds, clock: Clock): Promise<void> {
  for (const { path, isOwn, body } of objects)
    if (isOwn) await make(api, path, body, clock)
    else await apply(api, path, body)
  for (const program of programs) if (program.rules.length > 0) await allow(api, program)
}

/** Creates the object unless it exists. Its kind may have been defined a moment ago. */
async function make(api: KubeApi, path: string, body: object, clock: Clock): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + SERVED_MILLISECONDS
  for (;;) {
    const isLast = clock.monotonicMilliseconds() > deadline
    const { status } = await send(api, 'POST', path, { body, accepted: isLast ? [CONFLICT] : [CONFLICT, NOT_FOUND] })
    if (status !== NOT_FOUND) return
    await clock.sleep(LOOK_MILLISECONDS)
  }
}

/** Grants the program's rules in the complete cluster. */
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
