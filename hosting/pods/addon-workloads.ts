/** The pods of add-ons. The programs of an add-on share one pod and a Secret with its token and their kubeconfigs.
 *  Pure. */
import {
  type AddonNeeds,
  type AddonUser,
  CLOUD_USER,
  cloudEnvironment,
  CSI_CONTROLLER,
  CSI_OBJECTS,
  csiEnvironment,
  kindsOf,
  type PlatformPlace,
  SIDECAR_KINDS,
  sidecarFlags,
  sidecarUser,
  SNAPSHOT_CONTROLLER_USER,
} from '../core/addon-parts.ts'
import { kubeconfigFile } from '../core/plane-addons.ts'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { Manifest } from './kinds.ts'
import { selectorOf } from './base.ts'
import { CSI_SOCKET, FOLDERS } from './names.ts'
import type { PodsRecord } from './record.ts'
import type { HostSettings } from './settings.ts'
import { SIZES } from './sizes.ts'
import { type Container, containerOf, deployment, digestOf, filesVolume, podSpec, template } from './workloads.ts'

export const TOKEN = 'token'
const pathOf = (name: string): string => `${FOLDERS.files}/${name}`

/** The programs of an add-on, and its objects in the cluster. */
export const needsOf = (name: AddonName, { snapshotKinds }: HostSettings): AddonNeeds =>
  name === 'cloud-controller'
    ? { name, programs: [CLOUD_USER], objects: [] }
    : {
        name,
        objects: [...kindsOf(snapshotKinds), ...CSI_OBJECTS],
        programs: [CSI_CONTROLLER, ...SIDECAR_KINDS.map(sidecarUser), SNAPSHOT_CONTROLLER_USER],
      }

/** At most one pod runs at a time, because these programs elect no leader. A new token is in its file a minute later
 *  and used by the next request. A change of kubeconfigs restarts the pod. */
export function addonManifest(
  record: PodsRecord,
  settings: HostSettings,
  name: AddonName,
  kubeconfigs: readonly string[],
): Manifest {
  const spec = podSpec(
    settings,
    selectorOf(name).matchLabels,
    name === 'cloud-controller'
      ? { containers: [cloud(record, settings)], volumes: [filesVolume(name)] }
      : { containers: csi(record, settings), volumes: [filesVolume(name), { name: 'csi', emptyDir: {} }] },
  )
  return deployment(record, name, {
    replicas: 1,
    strategy: { type: 'Recreate' },
    template: template(record, name, spec, digestOf(...kubeconfigs)),
  })
}

/** The container of a program of this project. */
const own = (
  { addons }: PodsRecord,
  { images, platform }: HostSettings,
  addon: AddonName,
  container: Omit<Container, 'image'>,
  environmentOf: (place: PlatformPlace) => Readonly<Record<string, string>>,
) => {
  const { clusterId = '', zone = '' } = addons[addon] ?? {}
  const variables = environmentOf({ apiUrl: platform?.url ?? '', tokenFile: pathOf(TOKEN), clusterId, zone })
  const env = Object.entries(variables).map(([variable, value]) => ({ name: variable, value }))
  return containerOf({ ...container, image: images.platform, more: { env } })
}

const cloud = (record: PodsRecord, settings: HostSettings) =>
  own(
    record,
    settings,
    'cloud-controller',
    {
      name: CLOUD_USER.name,
      size: SIZES.cloudController,
      mounts: { files: FOLDERS.files },
      command: ['node', 'addons/cloud/main.ts'],
    },
    (place) => cloudEnvironment(place, pathOf(kubeconfigFile(CLOUD_USER.name))),
  )

function csi(record: PodsRecord, settings: HostSettings) {
  const { sidecars } = settings.images
  if (sidecars === undefined) throw new Error('there are no images of the driver of volumes')
  const mounts = { files: FOLDERS.files, csi: FOLDERS.csi }
  const beside = (user: AddonUser, image: string, args: readonly string[]) =>
    containerOf({ name: user.name, image, args, mounts, size: SIZES.sidecar })
  return [
    own(
      record,
      settings,
      'csi-driver',
      {
        name: CSI_CONTROLLER.name,
        size: SIZES.csiController,
        mounts,
        command: ['node', 'addons/csi/main.ts', 'controller'],
      },
      (place) => csiEnvironment(place, CSI_SOCKET),
    ),
    ...SIDECAR_KINDS.map((kind) => {
      const user = sidecarUser(kind)
      return beside(user, sidecars[kind], sidecarFlags(kind, pathOf(kubeconfigFile(user.name)), CSI_SOCKET))
    }),
    beside(SNAPSHOT_CONTROLLER_USER, sidecars.snapshotController, [
      `--kubeconfig=${pathOf(kubeconfigFile(SNAPSHOT_CONTROLLER_USER.name))}`,
    ]),
  ]
}
