/** The edit of a server that has no operation: made with kubectl or GitOps. Pure. */
import { changesBetween } from '../../../changes/kit/judge.ts'
import { serverChanges } from '../../../changes/server.ts'
import type { OperationKind } from '../../../domain/operations.ts'
import { firewallOf } from '../../../resources/server/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { DirectEdit } from '../../kit/operation/direct-edit.ts'
import { startOf } from '../../kit/detect-change.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { JOINED } from './conditions.ts'
import { networksToChange } from './networks.ts'
import { isDeleting, type Observed, type ServerObject } from './observed.ts'
import { isTrial } from './rebuild/trial.ts'

const NOTHING = { joining: [], leaving: [] }

/** A deletion ends a creation, and a trial of another root disk; it waits for the end of any other operation. The owner
 *  of a machine that is deleted removes the machine's document, so that a trial would wait for an answer that cannot
 *  come. */
export const isEndedByDeletion = (operation: OperationStanza): boolean =>
  operation.kind === 'server.create' || isTrial({ operation })

/** Undefined when the spec and the operations agree. */
export function detectEdit(
  server: ServerObject,
  { instance, claims }: Pick<Observed, 'instance' | 'claims'>,
): DirectEdit | undefined {
  const { spec, status, metadata } = server
  const active = activeOperation(server)
  if (isDeleting(server)) return undefined
  if (
    metadata.deletionTimestamp !== undefined &&
    !spec.isProtected &&
    (active === undefined || isEndedByDeletion(active))
  )
    return edit('server.delete', '')
  if (active !== undefined) return undefined
  if (spec.operation === undefined && status?.state === undefined) return edit('server.create', 'hostname')
  const resize = resizeOf(server)
  if (resize !== undefined) return resize
  // A server whose claims are lost is in error, whatever its power.
  const isForgottenOff = status?.state === 'error' && claims === undefined && instance?.spec.power === 'stopped'
  if ((status?.state === 'stopped' || isForgottenOff) && spec.desiredPower === 'running')
    return edit('server.start', 'desiredPower')
  const mayRun = status?.state === 'started' || (status?.state === 'error' && instance?.spec.power === 'running')
  if (mayRun && spec.desiredPower === 'stopped') return edit('server.stop', 'desiredPower')
  if (status?.state !== 'started' && status?.state !== 'stopped') return undefined
  if (firewallOf({ spec, status }).generation !== (status.firewall?.generation ?? 0))
    return edit('server.firewall', 'firewall')
  const { joining, leaving } = claims === undefined ? NOTHING : networksToChange(server, claims)
  // A refused edit is not tried again until it changes.
  if ((joining.length > 0 || leaving.length > 0) && refusalOf(server, JOINED) === undefined)
    return edit(joining.length > 0 ? 'server.attach_network' : 'server.detach_network', 'networks')
  const isMetadataChanged = instance !== undefined && instance.spec.metadata.isEnabled !== spec.metadataEnabled
  return isMetadataChanged ? edit('server.metadata', 'metadataEnabled') : undefined
}

/** A stopped server whose spec has another plan, or more boot storage, than it has. Both can be combined with a
 *  start. */
function resizeOf(server: ServerObject): DirectEdit | undefined {
  const { spec, status } = server
  if (status?.state !== 'stopped' || status.plan === undefined || status.storageGibibytes === undefined)
    return undefined
  const isLarger = (spec.storageGibibytes ?? 0) > status.storageGibibytes
  if (spec.plan === status.plan && !isLarger) return undefined
  const { plan, storageGibibytes } = status
  const [change] = changesBetween(serverChanges, { ...spec, plan, storageGibibytes }, spec)
  if (change?.operation === undefined) return undefined
  const start = startOf(serverChanges, server, { ...change, operation: change.operation })
  return { ...start, field: spec.plan === plan ? 'storageGibibytes' : 'plan' }
}

const edit = (kind: OperationKind, field: string): DirectEdit => ({ kind, field })
