/** A zone that has gained shared storage brings there what is of tier standard and lies on the disks of its hosts,
 *  while guests run: each storage by an operation of its own, few at a time. A server takes all that it has of that
 *  tier along at once. What could not be moved is tried again ever less often. Pure. */
import { findUnplaceable } from '../../../domain/node/evacuation.ts'
import { isFinal } from '../../../domain/operations.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { Misplaced, ReconcileInput, StorageObject, ZoneAction } from './observed.ts'

/** By which the moves that a zone begins are known. */
export const GATHERER = 'system:zones'
/** Storages of a zone that are on their way to shared storage at the same time. */
export const GATHERED_AT_ONCE_MAXIMUM = 2
const FIRST_RETRY_SECONDS = 600
const RETRY_SECONDS_MAXIMUM = 86_400

/** Begins the next moves. What anybody else does with the storage, its server or its node goes before. */
export function gather({ zone, observed, now }: ReconcileInput): readonly ZoneAction[] {
  const { misplaced = [], gathered = 0, nodes, hosts } = observed
  const isSharing = (node: string): boolean =>
    hosts.some((host) => host.node === node && host.isReachable && host.pools.length > 0)
  const sharing = nodes.filter(({ node }) => isSharing(node))
  const hasRoom = (one: Misplaced): boolean =>
    findUnplaceable({ node: one.node, zone: zone.metadata.name }, [{ serverId: '', ...one }], sharing).length === 0
  return misplaced
    .filter((one) => isSharing(one.node) && isIdle(one) && isDue(one, now) && hasRoom(one))
    .slice(0, Math.max(0, GATHERED_AT_ONCE_MAXIMUM - gathered))
    .flatMap((one) => moveOf(one))
}

const isIdle = ({ isNodeBusy, serverId, server, storages }: Misplaced): boolean =>
  !isNodeBusy &&
  storages.every(
    (storage) =>
      storage.metadata.deletionTimestamp === undefined &&
      storage.status?.state === 'online' &&
      activeOperation(storage) === undefined,
  ) &&
  (serverId === undefined ||
    (server !== undefined &&
      server.metadata.deletionTimestamp === undefined &&
      activeOperation(server) === undefined &&
      (server.status?.state === 'started' || server.status?.state === 'stopped')))

/** The first of them takes the others along. */
function moveOf({ namespace, node, storages }: Misplaced): readonly ZoneAction[] {
  const [first] = storages
  if (first === undefined) return []
  const turn = Math.max(...storages.map(turnsOf)) + 1
  return [
    {
      do: 'effect',
      name: 'orderStorage',
      input: {
        namespace,
        id: first.metadata.name,
        kind: 'storage.move',
        actor: GATHERER,
        arguments: { source_node_id: node, tier: 'standard', mode: 'live', turn: String(turn) },
      },
    },
  ]
}

/** How often it was tried; never when another operation came after that. */
const turnsOf = ({ spec: { operation } }: StorageObject): number =>
  operation?.kind === 'storage.move' && operation.actor === GATHERER ? Number(operation.arguments?.['turn'] ?? 1) : 0

const isDue = ({ storages }: Misplaced, now: Date): boolean => storages.every((storage) => isStorageDue(storage, now))

/** Ten minutes after the first try, twice as long after each further one, and once a day in the end. */
function isStorageDue(storage: StorageObject, now: Date): boolean {
  const turns = turnsOf(storage)
  const { status, finishedAt } = storage.status?.operation ?? {}
  if (turns === 0 || status === undefined || !isFinal(status) || finishedAt === undefined) return true
  const seconds = Math.min(FIRST_RETRY_SECONDS * 2 ** (turns - 1), RETRY_SECONDS_MAXIMUM)
  return now.getTime() >= Date.parse(finishedAt) + seconds * 1_000
}
