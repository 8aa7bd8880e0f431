/** Guests that nodes have or may start: those named in Kubernetes, and further ones on the hosts. */
import type { GuestOnNode } from '../../domain/node/placement.ts'
import { isUuid } from '../../domain/uuid.ts'
import { accountOfNamespace } from '../kit/account-namespace.ts'
import { type InstanceSpec, nodeOf, type NodeReportStatus, type VolumeSpec } from './index.ts'

interface Metadata {
  readonly namespace?: string
  readonly deletionTimestamp?: string | undefined
}

interface OnNodes {
  readonly instances: readonly { readonly metadata: Metadata; readonly spec: InstanceSpec }[]
  readonly reports: readonly { readonly metadata: Metadata; readonly status?: NodeReportStatus | undefined }[]
  /** GiB; undefined when unknown. */
  readonly sizeOf: (volume: {
    readonly namespace: string
    readonly name: string
  }) => VolumeSpec['sizeGibibytes'] | undefined
}

/** With the room of each guest. Excludes guests that are being removed: their claims end later. */
export const guestsOnNodes = ({ instances, reports, sizeOf }: OnNodes): readonly GuestOnNode[] => [
  ...instances
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec: { server, cores, memoryMebibytes, disks } }) => ({
      node: nodeOf({ metadata }),
      ...serverOf(server),
      cores,
      memoryMebibytes,
      storageGibibytes: disks.reduce(
        (sum, { volume: name }) => sum + (sizeOf({ namespace: metadata.namespace ?? '', name }) ?? 0),
        0,
      ),
    })),
  ...reports.flatMap(({ metadata, status }) =>
    (status?.unnamed ?? []).map(({ server, cores, memoryMebibytes, storageGibibytes }) => ({
      node: nodeOf({ metadata }),
      ...serverOf(server),
      cores,
      memoryMebibytes,
      storageGibibytes,
    })),
  ),
]

function serverOf(server: { readonly namespace: string; readonly name: string } | undefined) {
  const accountId = accountOfNamespace(server?.namespace ?? '')
  return accountId === undefined || !isUuid(accountId) ? {} : { accountId, serverId: server?.name }
}
