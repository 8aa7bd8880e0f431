/** A zone that has gained shared storage moves its storages of tier standard there from the disks of its hosts, while
 *  guests run: each storage by its own operation, few at a time. A server moves all its storages of that tier at once.
 *  What could not be moved is tried again, at growing intervals. Pure. */
import { findUnplaceable } from '../../../domain/node/evacuation.ts'
import { isFinal } from '../../../domain/operations.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { MisplacedData, ReconcileInput, StorageObject, ZoneAction } from './observed.ts'

/** The actor of the moves that a zone starts. */
export const GATHERER = 'system:zones'
/** Storages of a zone that are moving to shared storage at the same time. */
export const GATHERED_AT_ONCE_MAXIMUM = 2
const FIRST_RETRY_SECONDS = 600
const RETRY_SECONDS_MAXIMUM = 86_400

/** Starts the next moves. Any other operation on the storage, its server or its node takes precedence. */
export function gather({ zone, observed, now }: ReconcileInput): readonly ZoneAction[] {
  const { misplaced = [], gathered = 0, nodes, hosts } = observed
  const isSharing = (node: string): boolean =>
    hosts.some((host) => host.node === node && host.isReachable && host.pools.length > 0)
  const sharing = nodes.filter(({ node }) => isSharing(node))
  const hasRoom = (one: MisplacedData): boolean =>
    findUnplaceable({ node: one.node, zone: zone.metadata.name }, [{ serverId: '', ...one }], sharing).length === 0
  return misplaced
    .filter((one) => isSharing(one.node) && isIdle(one) && isDue(one, now) && hasRoom(one))
    .slice(0, Math.max(0, GATHERED_AT_ONCE_MAXIMUM - gathered))
    .flatMap((one) => moveOf(one))
}

const isIdle = ({ isNodeBusy, serverId, server, storages }: MisplacedData): boolean =>
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

/** The move of the first storage includes the others. */
function moveOf({ namespace, node, storages }: MisplacedData): readonly ZoneAction[] {
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

/** How often it was tried; 0 when another operation followed. */
const turnsOf = ({ spec: { operation } }: StorageObject): number =>
  operation?.kind === 'storage.move' && operation.actor === GATHERER ? Number(operation.arguments?.['turn'] ?? 1) : 0

const isDue = ({ storages }: MisplacedData, now: Date): boolean =>
  storages.every((storage) => isStorageDue(storage, now))

/** Ten minutes after the first try, twice as long after each further one, and at most a day. */
function isStorageDue(storage: StorageObject, now: Date): boolean {
  const turns = turnsOf(storage)
  const { status, finishedAt } = storage.status?.operation ?? {}
  if (turns === 0 || status === undefined || !isFinal(status) || finishedAt === undefined) return true
  const seconds = Math.min(FIRST_RETRY_SECONDS * 2 ** (turns - 1), RETRY_SECONDS_MAXIMUM)
  return now.getTime() >= Date.parse(finishedAt) + seconds * 1_000
}
