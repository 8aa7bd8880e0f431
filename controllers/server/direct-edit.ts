/** Which edit of a server no operation stands for: made with kubectl or GitOps. Pure. */
import type { OperationKind } from '../../domain/operations.ts'
import type { DirectEdit } from '../operation/direct-edit.ts'
import { activeOperation } from '../operation/stanza.ts'
import { type InstanceObject, isDeleting, type ServerObject } from './observed.ts'

/** Undefined when the spec and the operations agree. */
export function detectEdit(server: ServerObject, instance: InstanceObject | undefined): DirectEdit | undefined {
  const { spec, status, metadata } = server
  const active = activeOperation(server)
  if (isDeleting(server)) return undefined
  if (
    metadata.deletionTimestamp !== undefined &&
    !spec.isProtected &&
    (active === undefined || active.kind === 'server.create')
  )
    return edit('server.delete', '')
  if (active !== undefined) return undefined
  if (spec.operation === undefined && status?.state === undefined) return edit('server.create', 'hostname')
  if (status?.state === 'stopped' && spec.desiredPower === 'running') return edit('server.start', 'desiredPower')
  const mayRun = status?.state === 'started' || (status?.state === 'error' && instance?.spec.power === 'running')
  if (mayRun && spec.desiredPower === 'stopped') return edit('server.stop', 'desiredPower')
  const isMetadataChanged = instance !== undefined && instance.spec.metadata.isEnabled !== spec.metadataEnabled
  return isMetadataChanged && (status?.state === 'started' || status?.state === 'stopped')
    ? edit('server.metadata', 'metadataEnabled')
    : undefined
}

const edit = (kind: OperationKind, field: string): DirectEdit => ({ kind, field })
