/** Resource requests of the containers of a control plane, and the memory that is reserved for one. */
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { ControlPlaneDesired } from '../../integrations/control-planes/control.ts'

const MEBIBYTE = 1024 ** 2

export interface Size {
  readonly milliCpus: number
  /** Guaranteed memory. */
  readonly mebibytes: number
  readonly mebibytesMaximum: number
}

/** Without load each uses less, and with load more. Limits protect the other clusters. */
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

/** With two controllers one is elected and the other waits. */
export const controllersOf = ({ replicas }: Pick<ControlPlaneDesired, 'replicas'>): number => (replicas === 1 ? 1 : 2)

/** The four sidecars of the driver of volumes, and the controller of snapshots. */
const SIDECARS = 5
const ADDON_SIZES = {
  'cloud-controller': [SIZES.cloudController],
  'csi-driver': [SIZES.csiController, ...Array.from({ length: SIDECARS }, () => SIZES.sidecar)],
} as const satisfies Readonly<Record<AddonName, readonly Size[]>>

/** Requirements of one control plane in the host cluster. */
export interface PlaneNeeds {
  readonly replicas: 1 | 3
  /** Add-ons that run beside it. */
  readonly addons: readonly AddonName[]
}

const sum = ({ replicas, addons }: PlaneNeeds, of: 'mebibytes' | 'mebibytesMaximum'): number => {
  const { etcd, apiserver, tunnel, issuer, controllerManager, scheduler, reader } = SIZES
  const each = etcd[of] + apiserver[of] + tunnel[of] + issuer[of]
  const beside = addons.flatMap((name): readonly Size[] => ADDON_SIZES[name])
  const own = replicas * each + controllersOf({ replicas }) * (controllerManager[of] + scheduler[of]) + reader[of]
  return beside.reduce((all, size) => all + size[of], own)
}

/** Memory that is reserved for one control plane. */
export const bytesOf = (wanted: PlaneNeeds): number => sum(wanted, 'mebibytes') * MEBIBYTE
/** During a replacement the old and the new pod exist together. This is the memory for one upgrade at a time. */
export const BYTES_OF_UPGRADE = sum({ replicas: 1, addons: [] }, 'mebibytes') * MEBIBYTE

/** Exceeding this quota indicates a fault in this program or the host cluster. */
export const quotaOf = (wanted: PlaneNeeds): Readonly<Record<string, string>> => ({
  pods: String(6 * wanted.replicas + 10 + 2 * wanted.addons.length),
  persistentvolumeclaims: String(wanted.replicas),
  'requests.memory': `${2 * sum(wanted, 'mebibytes')}Mi`,
  'limits.memory': `${2 * sum(wanted, 'mebibytesMaximum')}Mi`,
  'services.loadbalancers': '1',
})

/** Resources of a container, in the form of Kubernetes. */
export const resourcesOf = ({ milliCpus, mebibytes, mebibytesMaximum }: Size) => ({
  requests: { cpu: `${milliCpus}m`, memory: `${mebibytes}Mi` },
  limits: { memory: `${mebibytesMaximum}Mi` },
})
