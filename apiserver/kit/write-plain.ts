/** Writes without an operation. */
import type { OperableSpec, OperableStatus } from '../../changes/kit/define.ts'
import { keyOf, type KubeObject, type ResourceType } from '../../kit/kube/object.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/kit/labels.ts'
import { commitEarlier } from './change/accept.ts'
import type { Parts } from './parts.ts'

interface PlainWrite {
  readonly changeId: string
  readonly spec: Readonly<Record<string, unknown>>
  /** Undefined when it is not deleted. */
  readonly deletedAt: Date | undefined
}

/** Changes or deletes the object without an operation. Returns it as it is then; the finalizer of a deleted object
 *  keeps it. */
export async function writePlain<Spec extends OperableSpec, Status extends OperableStatus>(
  parts: Parts,
  resource: ResourceType<Spec, Status>,
  object: KubeObject<Spec, Status>,
  { changeId, spec, deletedAt }: PlainWrite,
): Promise<KubeObject<Spec, Status>> {
  const { store } = parts
  const { resourceVersion, annotations, uid } = object.metadata
  const earlier = annotations?.[LAST_CHANGE_ANNOTATION]
  if (earlier !== undefined) await commitEarlier(parts, earlier)
  const metadata = { resourceVersion, annotations: { [LAST_CHANGE_ANNOTATION]: changeId } }
  if (deletedAt === undefined) return store.patch(resource, keyOf(object), { metadata, spec })
  await store.delete(resource, keyOf(object), uid === undefined ? {} : { uid })
  const deletionTimestamp = object.metadata.deletionTimestamp ?? deletedAt.toISOString()
  return (
    (await store.get(resource, keyOf(object))) ?? { ...object, metadata: { ...object.metadata, deletionTimestamp } }
  )
}
