/** The programs that run beside the control plane of each cluster, and speak to the platform with a token of the
 *  cluster: what they are, how they are called, and what each may do in the cluster. Whoever adds one adds a row. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { AddonName } from '../../kit/control-planes/addons.ts'
import { CSI_SIDECARS, SNAPSHOT_CONTROLLER_VERSION, SNAPSHOT_KINDS_FILE } from '../../kit/control-planes/versions.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { toolsFolder } from '../../kit/sys/tools-folder.ts'
import { VERSION } from '../../resources/version.ts'
import { GO_ENVIRONMENT } from '../../kit/control-planes/hosting/flags.ts'
import { areThere } from './programs.ts'

/** What a program is told of the cluster that it is for. */
export interface AddonPlace {
  /** Of the control plane. */
  readonly folder: string
  readonly apiUrl: string
  readonly tokenFile: string
  readonly clusterId: string
  readonly zone: string
  /** By which the program gets into the cluster; there where it has rules. */
  readonly kubeconfig: string
}

export interface AddonProgram {
  /** Of the process, its log, and the user that it is in the cluster. */
  readonly name: string
  /** As a rule of RBAC has it; without any it does not get into the cluster. */
  readonly rules: readonly object[]
  command(place: AddonPlace): readonly string[]
  environment(place: AddonPlace): Readonly<Record<string, string>>
}

export interface AddonObject {
  /** Of its collection. */
  readonly path: string
  /** One that is the cluster's own from then on: made where there is none, and never changed. */
  readonly isOwn: boolean
  readonly body: { readonly metadata: { readonly name: string; readonly annotations?: object } }
}

export interface Addon {
  readonly name: AddonName
  readonly version: string
  /** What its programs take for themselves together, without load and without their text, and a tenth of that:
   *  reserved for each cluster. */
  readonly bytes: number
  /** In the order of their start. */
  readonly programs: readonly AddonProgram[]
  readonly objects: readonly AddonObject[]
}

const MEBIBYTE = 1024 ** 2
const PROJECT = join(import.meta.dirname, '../..')

/** Those whose programs are there: of Kubernetes they must be built. */
export async function findAddons(folder = toolsFolder()): Promise<readonly Addon[]> {
  const sidecar = (name: keyof typeof CSI_SIDECARS) => join(folder, CSI_SIDECARS[name], `csi-${name}`)
  const sidecars = {
    ...{ provisioner: sidecar('provisioner'), attacher: sidecar('attacher'), resizer: sidecar('resizer') },
    snapshotter: sidecar('snapshotter'),
    'snapshot-controller': join(folder, SNAPSHOT_CONTROLLER_VERSION, 'snapshot-controller'),
  }
  if (!(await areThere(Object.values(sidecars)))) return [CLOUD_CONTROLLER]
  const kinds = await readKinds(join(folder, SNAPSHOT_CONTROLLER_VERSION, SNAPSHOT_KINDS_FILE))
  return [CLOUD_CONTROLLER, ...(kinds === undefined ? [] : [csiDriver(sidecars, kinds)])]
}

/** Undefined where there is no such file. */
async function readKinds(file: string): Promise<readonly AddonObject[] | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  // Definitions of kinds, as the project publishes them, and nothing between two separators.
  const bodies = parseAllDocuments(text).map((document) => document.toJS() as AddonObject['body'] | null)
  return bodies
    .filter((body) => body !== null)
    .map((body) => ({ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', isOwn: false, body }))
}

/** Of a program of this project: what all of them read. */
export const platformSettings = ({ apiUrl, tokenFile, clusterId, zone }: AddonPlace) => ({
  SVCCLOUD_URL: apiUrl,
  SVCCLOUD_TOKEN_FILE: tokenFile,
  SVCCLOUD_CLUSTER_ID: clusterId,
  SVCCLOUD_ZONE: zone,
})

const reading = ['get', 'list', 'watch']
const rule = (apiGroup: string, resources: readonly string[], verbs: readonly string[]) => ({
  ...{ apiGroups: [apiGroup], resources, verbs },
})
const EVENTS = rule('', ['events'], [...reading, 'create', 'update', 'patch'])
const STORAGE = 'storage.k8s.io'
const SNAPSHOTS = 'snapshot.storage.k8s.io'

const CLOUD_CONTROLLER: Addon = {
  ...{ name: 'cloud-controller', version: VERSION, bytes: 85 * MEBIBYTE, objects: [] },
  programs: [
    {
      name: 'cloud-controller',
      rules: [
        rule('', ['nodes', 'services'], ['list', 'watch', 'patch']),
        rule('', ['services/status'], ['patch']),
        rule('events.k8s.io', ['events'], ['get', 'create', 'patch']),
      ],
      command: () => [nodeBinary(), join(PROJECT, 'addons/cloud/main.ts')],
      environment: (place) => ({ ...platformSettings(place), KUBECONFIG: place.kubeconfig }),
    },
  ],
}

const csiSocket = ({ folder }: AddonPlace): string => join(folder, 'csi.sock')
const DRIVER = 'csi.svccloud.dev'

function csiDriver(
  files: Readonly<Record<keyof typeof CSI_SIDECARS | 'snapshot-controller', string>>,
  kinds: readonly AddonObject[],
): Addon {
  const sidecar = (
    kind: keyof typeof CSI_SIDECARS,
    rules: readonly object[],
    more: readonly string[] = [],
  ): AddonProgram => ({
    ...{ name: `csi-${kind}`, rules, environment: () => GO_ENVIRONMENT },
    command: (place) => [
      files[kind],
      `--kubeconfig=${place.kubeconfig}`,
      `--csi-address=${csiSocket(place)}`,
      '--timeout=60s',
      ...more,
    ],
  })
  return {
    ...{ name: 'csi-driver', version: VERSION, bytes: 140 * MEBIBYTE, objects: [...kinds, ...CSI_OBJECTS] },
    programs: [
      {
        ...{ name: 'csi-controller', rules: [] },
        command: () => [nodeBinary(), join(PROJECT, 'addons/csi/main.ts'), 'controller'],
        environment: (place) => ({ ...platformSettings(place), SVCCLOUD_CSI_SOCKET: csiSocket(place) }),
      },
      sidecar('provisioner', PROVISIONER, ['--default-fstype=ext4', '--extra-create-metadata']),
      sidecar('attacher', ATTACHER),
      sidecar('resizer', RESIZER),
      sidecar('snapshotter', SNAPSHOTTER, ['--extra-create-metadata']),
      {
        ...{ name: 'csi-snapshot-controller', rules: SNAPSHOT_CONTROLLER, environment: () => GO_ENVIRONMENT },
        command: ({ kubeconfig }) => [files['snapshot-controller'], `--kubeconfig=${kubeconfig}`],
      },
    ],
  }
}

/** As each of them says that it needs it. */
const PROVISIONER = [
  rule('', ['persistentvolumes'], [...reading, 'create', 'patch', 'delete']),
  rule('', ['persistentvolumeclaims'], [...reading, 'update']),
  rule('', ['nodes'], reading),
  rule(STORAGE, ['storageclasses', 'csinodes', 'volumeattachments', 'volumeattributesclasses'], reading),
  rule(SNAPSHOTS, ['volumesnapshots', 'volumesnapshotcontents'], ['get', 'list']),
  EVENTS,
]
const ATTACHER = [
  rule('', ['persistentvolumes'], [...reading, 'patch']),
  rule(STORAGE, ['csinodes'], reading),
  rule(STORAGE, ['volumeattachments'], [...reading, 'patch']),
  rule(STORAGE, ['volumeattachments/status'], ['patch']),
]
const RESIZER = [
  rule('', ['persistentvolumes'], [...reading, 'patch']),
  rule('', ['persistentvolumeclaims'], reading),
  rule('', ['persistentvolumeclaims/status'], ['patch']),
  rule('', ['pods'], reading),
  rule(STORAGE, ['volumeattributesclasses'], reading),
  EVENTS,
]
const SNAPSHOTTER = [
  rule(SNAPSHOTS, ['volumesnapshotclasses'], reading),
  rule(SNAPSHOTS, ['volumesnapshotcontents'], [...reading, 'update', 'patch']),
  rule(SNAPSHOTS, ['volumesnapshotcontents/status'], ['update', 'patch']),
  EVENTS,
]
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

const CSI_OBJECTS: readonly AddonObject[] = [
  {
    ...{ path: `/apis/${STORAGE}/v1/csidrivers`, isOwn: false },
    body: {
      ...{ apiVersion: `${STORAGE}/v1`, kind: 'CSIDriver', metadata: { name: DRIVER } },
      ...{ spec: { attachRequired: true, podInfoOnMount: false, fsGroupPolicy: 'File' } },
    },
  },
  {
    // Another class may be the default of the cluster: whoever says so is not overruled.
    ...{ path: `/apis/${STORAGE}/v1/storageclasses`, isOwn: true },
    body: {
      ...{ apiVersion: `${STORAGE}/v1`, kind: 'StorageClass', provisioner: DRIVER },
      metadata: { name: 'svccloud', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      ...{ volumeBindingMode: 'WaitForFirstConsumer', allowVolumeExpansion: true, reclaimPolicy: 'Delete' },
    },
  },
  {
    ...{ path: `/apis/${SNAPSHOTS}/v1/volumesnapshotclasses`, isOwn: true },
    body: {
      ...{ apiVersion: `${SNAPSHOTS}/v1`, kind: 'VolumeSnapshotClass', driver: DRIVER, deletionPolicy: 'Delete' },
      metadata: { name: 'svccloud', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    },
  },
]
