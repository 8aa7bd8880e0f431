/** All control planes of one host cluster. Accepts as many as fit in the reserved memory and storage. */
import type { ControlPlaneDesired, ControlPlaneOffer } from '../../integrations/control-planes/control.ts'
import { parseQuantity } from '../../integrations/control-planes/quantity.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import type { HostedPlanes } from '../core/metrics.ts'
import { Planes } from '../core/planes.ts'
import { readRecordOf } from '../core/record.ts'
import { Refused } from '../core/refused.ts'
import { HostNode } from './kinds.ts'
import { type PlaneOptions, PodsPlane } from './plane.ts'
import { newRecord, PodsRecord } from './record.ts'
import { addonsOf, type HostSettings, releasesOf } from './settings.ts'
import { BYTES_OF_UPGRADE, bytesOf } from './sizes.ts'

/** The folder contains one folder for each control plane: its record, keys and snapshots. */
export type PodsHostOptions = Omit<PlaneOptions, 'record'>

const MEBIBYTE = 1024 ** 2
const NO_GUESTS = 'control planes in pods have no guests'

/** Memory for control planes, and the number of nodes that provide it. Throws Unavailable. */
async function roomOf({ cluster, settings }: PodsHostOptions): Promise<{ memoryBytes: number; nodeCount: number }> {
  const { nodeSelector, memoryMebibytes } = settings
  const labelSelector = Object.entries(nodeSelector)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
  const { items } = await cluster.list(HostNode, labelSelector === '' ? {} : { labelSelector })
  const nodes = items.filter(
    ({ spec, status }) =>
      spec.unschedulable !== true &&
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
  )
  const all = nodes.reduce((sum, { status }) => sum + parseQuantity(status?.allocatable?.['memory'] ?? '0'), 0)
  const bytes = memoryMebibytes === undefined ? all : Math.min(all, memoryMebibytes * MEBIBYTE)
  return { memoryBytes: Math.max(0, bytes - BYTES_OF_UPGRADE), nodeCount: nodes.length }
}

/** Memory that a control plane reserves. */
const bytesFor = (settings: HostSettings, replicas: ControlPlaneDesired['replicas']): number =>
  bytesOf({ replicas, addons: addonsOf(settings) })

/** Serves once this resolves; continues with the control planes of the last run. */
export async function openPodsHost(options: PodsHostOptions): Promise<HostedPlanes> {
  const { folder, settings } = options
  const { mebibytes, mebibytesOfOne } = settings.storage
  const releases = releasesOf(settings)
  await makeFolder(folder, 0o700)
  const reservedBytes = () =>
    planes.all().reduce((sum, { record }) => sum + bytesFor(settings, record.desired.replicas), 0)
  const storedMebibytes = () =>
    planes.all().reduce((sum, { record }) => sum + record.desired.replicas * record.storage.mebibytes, 0)
  const planes: Planes<PodsRecord, PodsPlane> = new Planes({
    ...options,
    releases,
    guestsObstacle: async () => NO_GUESTS,
    async requireRoom({ replicas }) {
      const { memoryBytes } = await roomOf(options)
      if (reservedBytes() + bytesFor(settings, replicas) > memoryBytes)
        throw new Refused('no_capacity', 'The host of control planes has no memory left for another one.')
      if (storedMebibytes() + replicas * mebibytesOfOne > mebibytes)
        throw new Refused('no_capacity', 'The host of control planes has no storage left for another one.')
    },
    newRecord: async (desired, endpointPort) =>
      newRecord(desired, settings, settings.endpoint.type === 'NodePort' ? endpointPort : null),
    readRecord: (at) => readRecordOf(at, PodsRecord),
    open: (at, record) => new PodsPlane({ ...options, folder: at, record }),
  })
  for (const stored of await planes.stored()) planes.start(stored)
  return {
    ...planes.calls(),
    offer: async (): Promise<ControlPlaneOffer> => ({
      driver: 'pods',
      releases,
      ...(await roomOf(options)),
      reservedBytes: reservedBytes(),
      bytesOfOne: bytesFor(settings, 1),
      bytesOfThree: bytesFor(settings, 3),
      etcdBytes: Math.max(0, mebibytes - storedMebibytes()) * MEBIBYTE,
      nodesObstacle: '',
      guests: { obstacle: NO_GUESTS, bytesOfOne: 0, appDomain: '' },
    }),
    stop: () => planes.stop(),
  }
}
