/** Cancelling what a customer started: a mark is written beside the operation, and its reconciler undoes it, unless it
 *  has passed the point of no return. */
import { cancelling, isCancellable, isFinal, type OperationKind } from '../../../domain/operations.ts'
import { conflict, type Problem } from '../../../domain/problem.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { cancelOperation, Operable, OperationView } from '../../../resources/operation/index.ts'
import type { Backups } from '../backup/index.ts'
import type { CustomImages } from '../custom-image/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { changeObject } from '../../kit/plain/change-object.ts'
import type { ObjectStorages } from '../object-storage/index.ts'
import type { Objects } from '../../kit/plain/objects.ts'
import { requireBeforeCutover, type Servers } from '../server/index.ts'
import type { Storages } from '../storage/index.ts'

/** Resources whose operations customers may cancel. */
export interface Cancellables {
  readonly servers: Servers
  readonly storages: Storages
  readonly backups: Backups
  readonly customImages: CustomImages
  readonly objectStorages: ObjectStorages
}
/** More than there are zones. */
const OBJECT_STORAGES_MAXIMUM = 1_000
type CancelCall = Call<typeof cancelOperation, Customer>

/** Only what a caller requested can be cancelled. Operations that the platform started for its own reasons continue. */
const isRequested = (actor: string): boolean => /^(user|token):/.test(actor)

const hasEnded = (): Problem => conflict('state_not_allowed', 'The operation has ended.')
const notCancellable = (kind: OperationKind): Problem =>
  conflict('state_not_allowed', `This operation ${kind} cannot be cancelled.`)

/** Throws the Problem `state_not_allowed` (409) for an operation that has ended or can no longer be cancelled, that is
 *  of a kind that cannot be cancelled, or that the platform started. */
export async function markCancelled(
  parts: Parts & Cancellables,
  call: CancelCall,
  view: Pick<OperationView, 'kind' | 'status' | 'actor' | 'server_id' | 'storage_id' | 'backup_id' | 'template_id'>,
): Promise<void> {
  const { kind, status, actor, server_id, storage_id, backup_id, template_id } = view
  const { servers, storages, backups, customImages, objectStorages } = parts
  const { id } = call.params
  if (isFinal(status)) throw hasEnded()
  if (!isCancellable(kind) || !isRequested(actor)) throw notCancellable(kind)
  if (kind === 'storage.create' && storage_id !== null)
    return mark(parts, storages, call, storage_id, ({ spec, status: storageStatus }) => {
      // an empty storage is created at once, and an attached one exists already
      if (spec.source === undefined || spec.isBoot) throw notCancellable(kind)
      if (storageStatus?.state === 'online')
        throw conflict('state_not_allowed', 'The storage is made. Delete it instead.')
    })
  if (kind === 'backup.verify' && backup_id !== null) return mark(parts, backups, call, backup_id)
  if (kind.startsWith('template.') && template_id !== null) return mark(parts, customImages, call, template_id)
  if (kind === 'object_storage.migrate') {
    // The public form does not name it.
    const moving = objectStorages
      .page(call.caller.accountId, {}, undefined, OBJECT_STORAGES_MAXIMUM)
      .find(({ spec }) => spec.operation?.id === id)
    if (moving === undefined) throw hasEnded()
    return mark(parts, objectStorages, call, moving.metadata.name)
  }
  if (server_id === null) throw notCancellable(kind)
  return mark(parts, servers, call, server_id, ({ status: moved }) => requireBeforeCutover(moved, id))
}

async function mark<Spec extends Operable['spec'], Status extends NonNullable<Operable['status']>, View>(
  parts: Parts,
  objects: Objects<Spec, Status, View>,
  call: CancelCall,
  objectId: string,
  validate: (object: KubeObject<Spec, Status>) => void = () => {},
): Promise<void> {
  const { id } = call.params
  const edit = {
    resourceId: id,
    changes: () => [],
    patch(object: KubeObject<Spec, Status>) {
      const { operation: progress } = object.status ?? {}
      if (object.spec.operation?.id !== id || (progress?.id === id && isFinal(progress.status))) throw hasEnded()
      validate(object)
      return { operation: { arguments: cancelling } }
    },
  }
  await changeObject(parts, objects, call, edit, objectId)
}
