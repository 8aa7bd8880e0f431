/** The add-ons of clusters as processes of this machine: the paths and command lines of their programs. A new add-on is
 *  a new row. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AddonNeeds,
  type AddonObject,
  type AddonUser,
  CLOUD_USER,
  cloudEnvironment,
  CSI_CONTROLLER,
  CSI_OBJECTS,
  csiEnvironment,
  kindsOf,
  type PlatformPlace,
  type Sidecar,
  SIDECAR_KINDS,
  sidecarFlags,
  sidecarUser,
  SNAPSHOT_CONTROLLER_USER,
} from '../core/addon-parts.ts'
import {
  CSI_SIDECARS,
  SNAPSHOT_CONTROLLER_VERSION,
  SNAPSHOT_KINDS_FILE,
} from '../../domain/kubernetes-cluster/versions.ts'
import { toolsFolder } from '../../kit/sys/tools-folder.ts'
import { VERSION } from '../../domain/version.ts'
import { GO_ENVIRONMENT } from '../core/flags.ts'
import { ownProgram } from './own-programs.ts'
import { areThere } from './programs.ts'
import { RUN_FOLDER } from './users.ts'

/** A program's settings for its cluster. It runs in the folder of the control plane; paths are relative to that. */
export interface AddonPlace extends PlatformPlace {
  /** Kubeconfig of the program; it exists if the program has rules. */
  readonly kubeconfig: string
}

/** Its name is also that of the process and its log. */
export interface AddonProgram extends AddonUser {
  command(place: AddonPlace): readonly string[]
  environment(place: AddonPlace): Readonly<Record<string, string>>
}

export interface Addon extends AddonNeeds {
  readonly version: string
  /** Memory of its programs without load and without their code, plus a tenth: reserved for each cluster. */
  readonly bytes: number
  /** In the order of their start. */
  readonly programs: readonly AddonProgram[]
}

const MEBIBYTE = 1024 ** 2

/** Add-ons whose programs exist; those of Kubernetes must be built first. */
export async function findAddons(folder = toolsFolder()): Promise<readonly Addon[]> {
  const sidecar = (name: Sidecar) => join(folder, CSI_SIDECARS[name], `csi-${name}`)
  const sidecars = {
    provisioner: sidecar('provisioner'),
    attacher: sidecar('attacher'),
    resizer: sidecar('resizer'),
    snapshotter: sidecar('snapshotter'),
    'snapshot-controller': join(folder, SNAPSHOT_CONTROLLER_VERSION, 'snapshot-controller'),
  }
  if (!(await areThere(Object.values(sidecars)))) return [CLOUD_CONTROLLER]
  const file = join(folder, SNAPSHOT_CONTROLLER_VERSION, SNAPSHOT_KINDS_FILE)
  const kinds = await readFile(file, 'utf8').catch(() => undefined)
  return [CLOUD_CONTROLLER, ...(kinds === undefined ? [] : [csiDriver(sidecars, kindsOf(kinds))])]
}

const CLOUD_CONTROLLER: Addon = {
  name: 'cloud-controller',
  version: VERSION,
  bytes: 85 * MEBIBYTE,
  objects: [],
  programs: [
    {
      ...CLOUD_USER,
      command: () => ownProgram('addons/cloud/main.ts'),
      environment: (place) => cloudEnvironment(place, place.kubeconfig),
    },
  ],
}

/** Sidecars accept only absolute paths. */
const CSI_SOCKET = join('/proc/self/cwd', RUN_FOLDER, 'csi.sock')

const csiDriver = (
  files: Readonly<Record<Sidecar | 'snapshot-controller', string>>,
  kinds: readonly AddonObject[],
): Addon => ({
  name: 'csi-driver',
  version: VERSION,
  bytes: 140 * MEBIBYTE,
  objects: [...kinds, ...CSI_OBJECTS],
  programs: [
    {
      ...CSI_CONTROLLER,
      command: () => ownProgram('addons/csi/main.ts', ['controller']),
      environment: (place) => csiEnvironment(place, CSI_SOCKET),
    },
    ...SIDECAR_KINDS.map(
      (kind): AddonProgram => ({
        ...sidecarUser(kind),
        environment: () => GO_ENVIRONMENT,
        command: (place) => [files[kind], ...sidecarFlags(kind, place.kubeconfig, CSI_SOCKET)],
      }),
    ),
    {
      ...SNAPSHOT_CONTROLLER_USER,
      environment: () => GO_ENVIRONMENT,
      command: ({ kubeconfig }) => [files['snapshot-controller'], `--kubeconfig=${kubeconfig}`],
    },
  ],
})
