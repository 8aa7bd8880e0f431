/** What the containers of a control plane ask of the host cluster, and what is reserved for one. */
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'

const MEBIBYTE = 1024 ** 2

export interface Size {
  readonly milliCpus: number
  /** That it is sure to have. */
  readonly mebibytes: number
  readonly mebibytesMaximum: number
}

/** Without load each takes less, and with it more: limits keep one cluster from taking what others have. */
export const SIZES = {
  etcd: { milliCpus: 100, mebibytes: 128, mebibytesMaximum: 2_560 },
  apiserver: { milliCpus: 150, mebibytes: 320, mebibytesMaximum: 2_048 },
  tunnel: { milliCpus: 10, mebibytes: 48, mebibytesMaximum: 256 },
  issuer: { milliCpus: 5, mebibytes: 64, mebibytesMaximum: 128 },
  controllerManager: { milliCpus: 50, mebibytes: 96, mebibytesMaximum: 512 },
  scheduler: { milliCpus: 20, mebibytes: 48, mebibytesMaximum: 256 },
  cloudController: { milliCpus: 10, mebibytes: 96, mebibytesMaximum: 384 },
  csiController: { milliCpus: 10, mebibytes: 96, mebibytesMaximum: 384 },
  sidecar: { milliCpus: 5, mebibytes: 24, mebibytesMaximum: 192 },
  reader: { milliCpus: 20, mebibytes: 96, mebibytesMaximum: 640 },
  receiver: { milliCpus: 10, mebibytes: 64, mebibytesMaximum: 256 },
} as const satisfies Readonly<Record<string, Size>>

/** Controllers elect one of them, the other waits. */
export const controllersOf = ({ replicas }: Pick<ControlPlaneDesired, 'replicas'>): number => (replicas === 1 ? 1 : 2)

/** The four sidecars of the driver of volumes, and the controller of snapshots. */
const SIDECARS = 5
const ADDON_SIZES = {
  'cloud-controller': [SIZES.cloudController],
  'csi-driver': [SIZES.csiController, ...Array.from({ length: SIDECARS }, () => SIZES.sidecar)],
} as const satisfies Readonly<Record<AddonName, readonly Size[]>>

/** What is wanted of the host cluster by one. */
export interface Wanted {
  readonly replicas: 1 | 3
  /** That run beside it. */
  readonly addons: readonly AddonName[]
}

const sum = ({ replicas, addons }: Wanted, of: 'mebibytes' | 'mebibytesMaximum'): number => {
  const { etcd, apiserver, tunnel, issuer, controllerManager, scheduler, reader } = SIZES
  const each = etcd[of] + apiserver[of] + tunnel[of] + issuer[of]
  const beside = addons.flatMap((name): readonly Size[] => ADDON_SIZES[name])
  const own = replicas * each + controllersOf({ replicas }) * (controllerManager[of] + scheduler[of]) + reader[of]
  return beside.reduce((all, size) => all + size[of], own)
}

/** Reserved for one. */
export const bytesOf = (wanted: Wanted): number => sum(wanted, 'mebibytes') * MEBIBYTE
/** While it is replaced, and until the others have ended, a pod is there twice: room for one upgrade at a time. */
export const BYTES_OF_UPGRADE = sum({ replicas: 1, addons: [] }, 'mebibytes') * MEBIBYTE

/** More than that is a fault, of ours or of the host cluster. */
export const quotaOf = (wanted: Wanted): Readonly<Record<string, string>> => ({
  pods: String(6 * wanted.replicas + 10 + 2 * wanted.addons.length),
  persistentvolumeclaims: String(wanted.replicas),
  'requests.memory': `${2 * sum(wanted, 'mebibytes')}Mi`,
  'limits.memory': `${2 * sum(wanted, 'mebibytesMaximum')}Mi`,
  'services.loadbalancers': '1',
})

/** Of a container, as Kubernetes has it. */
export const resourcesOf = ({ milliCpus, mebibytes, mebibytesMaximum }: Size) => ({
  requests: { cpu: `${milliCpus}m`, memory: `${mebibytes}Mi` },
  limits: { memory: `${mebibytesMaximum}Mi` },
})
